// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/cuda/memory.h"
#include "core/device.h"
#include "tests/support/program_path.h"
#include "tests/support/test_device.h"

// How tests of pipelines over processes, which stage_worker runs, do on
// TestDevice.
namespace baton::dist {

// The dropout of their stages. On GPUs the workers' steps are recorded, and
// stages that draw random numbers are not.
inline double Drop() { return test::TestDevice().is_cuda() ? 0 : 0.5; }

// The device of the next worker that is started: the GPUs take turns.
inline Device NextDevice() {
  static std::atomic<int> started = 0;
  if (!test::TestDevice().is_cuda()) return Device::Cpu();
  return Device::Cuda(started++ % cuda::DeviceCount());
}

// What starts a worker that can make the stages of process_stages.h
// (testing::ProcessCluster).
inline std::vector<std::string> StageWorker(const std::string& name,
                                            const std::string& rendezvous,
                                            int world_size) {
  return {testing::ProgramPath("stage_worker"), name, rendezvous,
          NextDevice().ToString(), std::to_string(world_size)};
}

// On the CPU the losses must be equal. GPUs round in another way than a CPU,
// which computes what is wanted.
inline void ExpectSame(const std::vector<double>& got,
                       const std::vector<double>& wanted, double slack) {
  if (!test::TestDevice().is_cuda()) slack = 0;
  EXPECT_THAT(got, ::testing::Pointwise(::testing::DoubleNear(slack), wanted));
}

}  // namespace baton::dist
