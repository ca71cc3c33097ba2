// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/conv.h"

#include <gtest/gtest.h>

#include "core/conv_tuning.h"
#include "core/graph.h"
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
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    for (MemoryFormat order : {MemoryFormat::kContiguous, kLast}) {
      const Tensor dweight = test::Put(Numbers(kWeight, dtype, 3, order));
      Array4 expected(dweight);
      Array4 added(ConvBackwardWeight(Dy(dtype), X(dtype), kWeight, {}, order));
      for (size_t i = 0; i < expected.values.size(); ++i)
        expected.values[i] += added.values[i];
      const uint64_t version = dweight.version();
      ConvAddBackwardWeight(Dy(dtype), X(dtype), {}, dweight);
      ExpectNear(dweight, expected, testing::ToleranceOf(dtype), Name(dtype));
      EXPECT_GT(dweight.version(), version);
    }
  }
}

TEST_F(GpuConv, AddsOnlyToDenseGradients) {
  const Tensor wide = test::Put(Numbers({16, 8, 3, 6}, DType::kF32, 3));
  EXPECT_EQ(ErrorOf([&] {
              ConvAddBackwardWeight(Dy(DType::kF32), X(DType::kF32), {},
                                    wide.Slice(3, 0, 3));
            }),
            "[conv2d_backward_weight] expected a dense gradient to add to");
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
