// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "examples/support/participants.h"
#include "tests/support/status_matchers.h"

// What workers declare, and a program would otherwise ignore.
namespace baton::examples {
namespace {

using testing::Fails;
using testing::IsOk;

TEST(CheckCompute, NamesTheFlagThatAProgramHasNoUseFor) {
  rpc::WorkerInfo cpu, gpu, half;
  gpu.name = "b";
  gpu.compute.device = Device::Cuda(1);
  half.name = "c";
  half.compute = {.device = Device::Cuda(0), .dtype = DType::kBF16};
  EXPECT_THAT(CheckCompute({cpu, cpu}, false), IsOk());
  EXPECT_THAT(
      CheckCompute({cpu, gpu}, false),
      Fails(absl::StatusCode::kInvalidArgument, "--device=cuda:1 of b"));
  EXPECT_THAT(CheckCompute({cpu, gpu}, true), IsOk());
  EXPECT_THAT(CheckCompute({cpu, half}, true),
              Fails(absl::StatusCode::kInvalidArgument, "--dtype of c"));
}

}  // namespace
}  // namespace baton::examples
