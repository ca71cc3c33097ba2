// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/device.h"
#include "core/future.h"
#include "rpc/agent.h"

namespace baton::dist {

// Returns the devices on which a worker can place modules: the device that it
// has declared and, where that is a GPU, the other GPUs that its process sees.
Future<std::vector<Device>> DevicesOf(rpc::Agent& agent,
                                      const rpc::Target& worker);

// Every worker's registry needs this for DevicesOf.
void RegisterDevices(rpc::Registry& registry);

}  // namespace baton::dist
