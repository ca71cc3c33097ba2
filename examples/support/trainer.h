// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/agent.h"
#include "rpc/registry.h"
#include "rpc/worker.h"

namespace baton::examples {

// What every process of these programs can be asked for.
rpc::Registry MakeRegistry();

// Returns InvalidArgument if the trainer was told a dtype, other than fp32, in
// which not all of these workers compute: theirs alone counts.
absl::Status CheckDType(const rpc::Compute& trainer,
                        const std::vector<rpc::WorkerInfo>& workers);

// Joins the cluster of the flags as the trainer, trains over its workers, and
// leaves it. Fails as CheckDType does.
absl::Status RunTrainer(
    const std::function<absl::Status(rpc::Agent&,
                                     std::vector<std::string> workers)>& train);

}  // namespace baton::examples
