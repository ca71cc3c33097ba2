// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::examples {

// What every process of these programs can be asked for.
rpc::Registry MakeRegistry();

// Joins the cluster of the flags as the trainer, trains over its workers, and
// leaves it.
absl::Status RunTrainer(
    const std::function<absl::Status(rpc::Agent&,
                                     std::vector<std::string> workers)>& train);

}  // namespace baton::examples
