// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "rpc/worker.h"
#include "tools/launched.h"

// The command-line flags of every program that computes:
//   --device --dtype --deterministic
namespace baton::tools {

// Reads the parsed flags, and sets what applies to the whole process
// (core/precision.h). The device is that of a launched process if this is one
// (DeviceOf, tools/launched.h). Errors are those of ComputeOf
// (tools/compute.h); FailedPrecondition says what the device lacks here.
absl::StatusOr<rpc::Compute> ComputeFromFlags(
    const std::optional<Launched>& launched = {});

}  // namespace baton::tools
