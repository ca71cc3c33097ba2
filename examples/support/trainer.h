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

// Returns the registry that every process of these programs needs.
rpc::Registry MakeRegistry();

// Returns InvalidArgument if the trainer's dtype, other than fp32, is not that
// of all these workers. The workers' dtype alone decides.
absl::Status CheckDType(const rpc::Compute& trainer,
                        const std::vector<rpc::WorkerInfo>& workers);

// Joins the cluster of the flags as the trainer, calls `train` with its workers
// and leaves. Errors are also those of CheckDType.
absl::Status RunTrainer(
    const std::function<absl::Status(rpc::Agent&,
                                     std::vector<std::string> workers)>& train);

}  // namespace baton::examples
