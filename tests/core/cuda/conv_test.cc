// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/conv.h"

#include <gtest/gtest.h>

#include "core/conv_tuning.h"
#include "core/graph.h"
#include "core/precision.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::cuda {
namespace {

using ::baton::testing::Array4;
using ::baton::testing::ErrorOf;
using ::baton::testing::ExpectNear;
using ::baton::testing::Numbers;

constexpr MemoryFormat kLast = MemoryFormat::kChannelsLast;
const Shape kWeight = {16, 8, 3, 3};

class GpuConv : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
  }
  Tensor X(DType dtype, uint64_t seed = 1) const {
    return test::Put(Numbers({4, 8, 10, 10}, dtype, seed, kLast));
  }
  Tensor Dy(DType dtype) const {
    return test::Put(Numbers({4, 16, 8, 8}, dtype, 2, kLast));
  }
};

TEST_F(GpuConv, AddsAGradientToOneThatIsThere) {
  const Shape shape{4, 8, 10, 10};
  for (bool deterministic : {false, true}) {
    SetDeterministic(deterministic);
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      for (MemoryFormat order : {MemoryFormat::kContiguous, kLast}) {
        const Tensor weight = test::Put(Numbers(kWeight, dtype, 3, order));
        const Tensor dx = test::Put(Numbers({4, 8, 10, 10}, dtype, 4, order));
        Array4 expected(dx);
        Array4 added(ConvBackwardInput(Dy(dtype), weight, shape, {}));
        for (size_t i = 0; i < expected.values.size(); ++i)
          expected.values[i] += added.values[i];
        const uint64_t version = dx.version();
        ConvAddBackwardInput(Dy(dtype), weight, {}, dx);
        ExpectNear(dx, expected, testing::ToleranceOf(dtype), Name(dtype));
        EXPECT_GT(dx.version(), version);
      }
    }
  }
  SetDeterministic(false);
}

// A recording cannot try whether an engine adds.
TEST_F(GpuConv, AddsInARecordingOfWhatNeverRan) {
  SetConvSearch(false);
  const Tensor weight = test::Put(Numbers(kWeight, DType::kF32, 3, kLast));
  const Tensor dy = Dy(DType::kF32);
  const Tensor dx = test::Put(Numbers({4, 8, 10, 10}, DType::kF32, 4, kLast));
  Array4 expected(dx);
  Array4 added(ConvBackwardInput(dy, weight, {4, 8, 10, 10}, {}));
  const Graph graph = Graph::Record(
      {dx.device()}, [&] { ConvAddBackwardInput(dy, weight, {}, dx); });
  for (int replay = 1; replay <= 2; ++replay) {
    graph.Replay();
    for (size_t i = 0; i < expected.values.size(); ++i)
      expected.values[i] += added.values[i];
    ExpectNear(dx, expected, testing::ToleranceOf(DType::kF32), "replayed");
  }
  SetConvSearch(true);
}

TEST_F(GpuConv, AddsOnlyToDenseGradients) {
  const Tensor wide = test::Put(Numbers({4, 8, 10, 20}, DType::kF32, 3));
  const Tensor weight = test::Put(Numbers(kWeight, DType::kF32, 3));
  EXPECT_EQ(ErrorOf([&] {
              ConvAddBackwardInput(Dy(DType::kF32), weight, {},
                                   wide.Slice(3, 0, 10));
            }),
            "[conv2d_backward_input] expected a dense gradient to add to");
}

// A recording cannot search: the first has nothing to go by but cuDNN's
// suggestion, the second replays what the search between them found.
TEST_F(GpuConv, IsRecordedBeforeAndAfterASearch) {
  const Tensor x = X(DType::kBF16);
  const Tensor weight = test::Put(Numbers(kWeight, DType::kBF16, 3, kLast));
  const Tensor y = Tensor::Empty(
      {4, 16, 8, 8},
      {.dtype = DType::kBF16, .device = x.device(), .format = kLast});
  const auto record = [&] {
    return Graph::Record({x.device()}, [&] {
      y.CopyFrom(ConvForward(x, weight, Tensor(), {}));
    });
  };
  // Libraries are ready after any convolution.
  ConvForward(x, test::Put(Numbers({8, 8, 1, 1}, DType::kBF16, 5)), {}, {});
  const Graph before = record();
  const Array4 first(ConvForward(x, weight, Tensor(), {}));
  const Graph after = record();
  for (const Graph* graph : {&before, &after}) {
    y.Fill(0);
    graph->Replay();
    ExpectNear(y, first, testing::ToleranceOf(DType::kBF16), "first input");
    x.CopyFrom(X(DType::kBF16, 7));
    graph->Replay();
    ExpectNear(y, Array4(ConvForward(x, weight, Tensor(), {})),
               testing::ToleranceOf(DType::kBF16), "second input");
    x.CopyFrom(X(DType::kBF16));
  }
}

}  // namespace
}  // namespace baton::cuda
