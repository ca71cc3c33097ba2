// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/worker.h"

// The device, dtype and determinism of a program: --device, --dtype,
// --deterministic.
namespace baton::tools {

// `dtype` is fp32, tf32, bf16 or fp16. InvalidArgument names the flag that is
// wrong; a dtype that needs a GPU is wrong with another device.
absl::StatusOr<rpc::Compute> ComputeOf(const std::string& device,
                                       const std::string& dtype,
                                       bool deterministic);

// Returns the value of --dtype.
std::string DTypeFlag(const rpc::Compute& compute);

// Assigns the devices of `list`, separated by commas, to the workers in turn.
// "cuda" stands for all `gpus` GPUs of this machine; FailedPrecondition if it
// has none.
absl::StatusOr<std::vector<std::string>> DealDevices(const std::string& list,
                                                     int workers, int gpus);

}  // namespace baton::tools
