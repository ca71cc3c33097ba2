// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device.h"
#include "core/dtype.h"

namespace baton::examples {

// Where resnet50_single_machine computes, and how.
struct Machine {
  // Stages take them in turn; the first is --device, the others are those
  // behind it. On the CPU each is an equal share of the cores.
  std::vector<Device> devices;
  std::string dtype_name = "fp32";  // as on the command line
  DType dtype = DType::kF32;        // of weights and activations
  bool graph = false;               // steps are recorded and replayed
  int threads_per_device = 1;       // of the CPU
  std::string overlap_trace = {};   // file; empty: none

  bool is_cuda() const { return devices.front().is_cuda(); }
};

// From the flags, after they are parsed, for a model of `stages`.
// InvalidArgument names the flag that is wrong; FailedPrecondition says what a
// GPU lacks here.
absl::StatusOr<Machine> MachineFromFlags(int stages);

}  // namespace baton::examples
