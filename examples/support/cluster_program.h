// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>

#include "absl/status/status.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::examples {

// Main of a program that is all processes of its cluster: joins by the flags,
// with distributed autograd and collectives. The one named "trainer" runs
// `check`, before anybody hears of it, then `lead`; the others serve until a
// signal ends them. What the two throw becomes a status.
absl::Status RunInCluster(rpc::Registry registry,
                          const std::function<absl::Status()>& check,
                          const std::function<absl::Status(rpc::Agent&)>& lead);

}  // namespace baton::examples
