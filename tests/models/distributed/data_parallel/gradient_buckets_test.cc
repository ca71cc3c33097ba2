// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/gradient_buckets.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/ops/arithmetic.h"

namespace baton::dist {
namespace {

Variable Parameter(const Shape& shape, DType dtype = DType::kF32) {
  return Variable(Tensor::Zeros(shape, {.dtype = dtype}), true);
}

// 40, 80, 40, 40 bytes.
std::vector<Variable> Four() {
  return {Parameter({10}), Parameter({4, 5}), Parameter({10}),
          Parameter({5, 2})};
}

TEST(GradientBuckets, AreCutBySizeInTheirOrder) {
  const GradientBuckets buckets(Four(), {3, 2, 1, 0},
                                {.first = 40, .others = 120});
  ASSERT_EQ(buckets.size(), 3u);  // 3 | 2 1 | 0
  EXPECT_EQ(buckets.all(0).numel(), 10);
  EXPECT_EQ(buckets.all(1).numel(), 30);
  EXPECT_EQ(buckets.all(2).numel(), 10);
  EXPECT_EQ(buckets.view(1).shape(), Shape({4, 5}));
  EXPECT_EQ(buckets.view(1).storage(), buckets.all(1).storage());
}

TEST(GradientBuckets, EndWithALittleOne) {
  const GradientBuckets buckets(Four(), {3, 2, 1, 0},
                                {.first = 500, .others = 500, .last = 60});
  ASSERT_EQ(buckets.size(), 2u);  // 3 2 1 | 0
  EXPECT_EQ(buckets.parameters(1), (std::vector<size_t>{0}));
}

// As those of normalizations between convolutions of bf16.
TEST(GradientBuckets, OfDtypesThatTakeTurnsAreNotOneForEachTurn) {
  std::vector<Variable> parameters;
  std::vector<size_t> order;
  for (size_t i = 0; i < 10; ++i) {
    parameters.push_back(
        Parameter({8}, i % 2 == 0 ? DType::kF32 : DType::kBF16));
    order.push_back(9 - i);
  }
  const GradientBuckets buckets(parameters, order,
                                {.first = 1000, .others = 1000});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets.all(0).dtype(), DType::kBF16) << "whose last comes first";
  EXPECT_EQ(buckets.parameters(0), (std::vector<size_t>{9, 7, 5, 3, 1}));
  EXPECT_EQ(buckets.parameters(1), (std::vector<size_t>{8, 6, 4, 2, 0}));
}

TEST(GradientBuckets, AreReadyInOrderWhenAllOfThemAreThere) {
  const std::vector<Variable> parameters = Four();
  GradientBuckets buckets(parameters, {3, 2, 1, 0},
                          {.first = 40, .others = 80});
  ASSERT_EQ(buckets.size(), 4u);
  EXPECT_EQ(buckets.Put(2, Tensor::Ones({10})), 0u);
  EXPECT_EQ(buckets.Put(3, Tensor::Ones({5, 2})), 2u);
  EXPECT_EQ(buckets.Put(0, Tensor::Ones({10})), 2u);
  EXPECT_TRUE(buckets.has(0));
  EXPECT_FALSE(buckets.has(1));
  buckets.PutTheRest();
  EXPECT_FALSE(buckets.has(1));
  EXPECT_EQ(buckets.view(1).ToVector<float>(), std::vector<float>(20, 0));
  EXPECT_EQ(buckets.view(0).ToVector<float>(), std::vector<float>(10, 1));
  buckets.Begin();
  EXPECT_FALSE(buckets.has(0));
  EXPECT_EQ(buckets.Put(3, Tensor::Ones({5, 2})), 1u);
}

TEST(GradientBuckets, BecomeReadyInTheOrderThatTheyAreGiven) {
  const std::vector<Variable> parameters = Four();
  GradientBuckets buckets(parameters, {3, 2, 1, 0},
                          {.first = 40, .others = 80});
  EXPECT_EQ(buckets.order(), (std::vector<size_t>{0, 1, 2, 3}));
  buckets.Reorder({0, 3, 1, 2});
  EXPECT_EQ(buckets.order(), (std::vector<size_t>{3, 0, 2, 1}));
  EXPECT_EQ(buckets.parameters(3), (std::vector<size_t>{0}));
  buckets.Begin();
  EXPECT_EQ(buckets.Put(3, Tensor::Ones({5, 2})), 0u);
  EXPECT_EQ(buckets.Put(0, Tensor::Ones({10})), 2u);
}

TEST(GradientBuckets, AddToWhatAParameterHas) {
  std::vector<Variable> parameters = Four();
  GradientBuckets buckets(parameters, {0, 1, 2, 3}, {});
  parameters[0].set_grad(Tensor::Full({10}, 3));
  parameters[1].set_grad(Tensor::Full({4, 5}, 4));
  buckets.Put(0, Tensor::Ones({10}));
  buckets.PutTheRest();
  EXPECT_EQ(buckets.view(0).data<float>()[9], 4);
  EXPECT_EQ(buckets.view(1).Contiguous().data<float>()[19], 4);
  EXPECT_TRUE(buckets.has(1));
  // Its own view is not copied onto itself.
  parameters[0].set_grad(buckets.view(0));
  buckets.Begin();
  buckets.Put(0, Tensor::Ones({10}));
  EXPECT_EQ(parameters[0].grad().data<float>()[0], 5);
}

TEST(FlatTensor, KeepsTheMemoryOrderOfItsParts) {
  const Tensor last =
      Tensor::Zeros({2, 3, 4, 5}, {.format = MemoryFormat::kChannelsLast});
  const FlatTensor flat = FlatTensor::Like({Tensor::Zeros({7}), last});
  EXPECT_EQ(flat.all.numel(), 127);
  EXPECT_TRUE(flat.parts[1].IsContiguous(MemoryFormat::kChannelsLast));
  EXPECT_EQ(flat.parts[1].offset(), 7);
}

}  // namespace
}  // namespace baton::dist
