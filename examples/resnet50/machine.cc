// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/machine.h"

#include <algorithm>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "core/gpu_count.h"
#include "core/parallel.h"
#include "core/status.h"
#include "tools/command_line.h"
#include "tools/compute.h"
#include "tools/compute_flags.h"
#include "tools/output_file.h"

ABSL_DECLARE_FLAG(std::string, graph);
ABSL_DECLARE_FLAG(int, at_once);
ABSL_DECLARE_FLAG(bool, overlap);
ABSL_FLAG(int, gpus, 0,
          "devices that the stages take in turn, with --device=cuda; 0: one a "
          "stage, as far as there are so many");
ABSL_FLAG(int, threads_per_device, 0,
          "compute threads of one device; 0: an equal share of the cores");
ABSL_FLAG(std::string, overlap_trace, "",
          "write when each instruction and copy of one pipelined step ran, for "
          "Perfetto or chrome://tracing, to this file; needs a GPU");

namespace baton::examples {
namespace {

using tools::WrongFlag;

absl::Status ReadGraph(Machine& machine) {
  const std::string graph = absl::GetFlag(FLAGS_graph);
  if (graph == "on" && !machine.is_cuda())
    return WrongFlag("graph", "on needs --device=cuda");
  machine.graph = machine.is_cuda() && graph != "off";
  return absl::OkStatus();
}

absl::Status CheckStreams(const Machine& machine) {
  if (machine.is_cuda()) return absl::OkStatus();
  if (absl::GetFlag(FLAGS_at_once) > 1)
    return WrongFlag("at_once", "needs --device=cuda");
  if (absl::GetFlag(FLAGS_overlap))
    return WrongFlag("overlap", "needs --device=cuda");
  return absl::OkStatus();
}

absl::Status ReadThreads(Machine& machine, int stages) {
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_threads_per_device));
  machine.threads_per_device = absl::GetFlag(FLAGS_threads_per_device);
  if (machine.threads_per_device == 0)
    machine.threads_per_device = std::max(1, ComputeThreads() / stages);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Machine> MachineFromFlags(int stages) {
  Machine machine;
  ASSIGN_OR_RETURN(const rpc::Compute compute, tools::ComputeFromFlags());
  machine.dtype = compute.dtype;
  machine.dtype_name = tools::DTypeFlag(compute);
  const Device first = compute.device;
  machine.devices = {first};
  const int gpus = absl::GetFlag(FLAGS_gpus);
  if (gpus < 0 || (gpus > 0 && first.is_cpu()))
    return WrongFlag("gpus", "takes 1 and up, with --device=cuda");
  for (int i = 1; i < stages; ++i) {
    if (gpus > 0 && i == gpus) break;
    if (first.is_cpu()) {
      machine.devices.push_back(first);
    } else if (first.index() + i < GpuCount()) {
      machine.devices.push_back(Device::Cuda(first.index() + i));
    }
  }
  RETURN_IF_ERROR(ReadGraph(machine));
  RETURN_IF_ERROR(CheckStreams(machine));
  RETURN_IF_ERROR(ReadThreads(machine, stages));
  RETURN_IF_ERROR(tools::CheckOutputs(FLAGS_overlap_trace));
  machine.overlap_trace = absl::GetFlag(FLAGS_overlap_trace);
  if (!machine.overlap_trace.empty() && !machine.is_cuda())
    return WrongFlag("overlap_trace", "needs --device=cuda");
  return machine;
}

}  // namespace baton::examples
