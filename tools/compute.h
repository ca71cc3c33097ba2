// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/worker.h"

// How programs are told what to compute on: --device, --dtype, --deterministic.
namespace baton::tools {

// `dtype` is fp32, tf32, bf16 or fp16. InvalidArgument names the flag that is
// wrong; also where a dtype needs a GPU and the device is none.
absl::StatusOr<rpc::Compute> ComputeOf(const std::string& device,
                                       const std::string& dtype,
                                       bool deterministic);

// What --dtype was.
std::string DTypeFlag(const rpc::Compute& compute);

// One device for each worker: those of `list`, divided by commas, in turn.
// "cuda" is every GPU of this machine, which has `gpus`. FailedPrecondition
// where it has none.
absl::StatusOr<std::vector<std::string>> DealDevices(const std::string& list,
                                                     int workers, int gpus);

}  // namespace baton::tools
