// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device.h"
#include "core/dtype.h"

namespace baton::examples {

// The devices of resnet50_single_machine and how they compute.
struct Machine {
  // Stages are assigned to them in turn. The first is --device, the others are
  // those after it. On the CPU each device is an equal share of the cores.
  std::vector<Device> devices;
  std::string dtype_name = "fp32";  // as on the command line
  DType dtype = DType::kF32;        // of weights and activations
  bool graph = false;               // steps are recorded and replayed
  int threads_per_device = 1;       // per device, on the CPU
  std::string overlap_trace = {};   // file; empty: none

  bool is_cuda() const { return devices.front().is_cuda(); }
};

// Reads the parsed flags for a model of `stages`. InvalidArgument names the
// flag that is wrong; FailedPrecondition says what a GPU of this machine lacks.
absl::StatusOr<Machine> MachineFromFlags(int stages);

}  // namespace baton::examples
