// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "tests/support/error_of.h"

namespace baton {
namespace {

using test::ErrorOf;
using ::testing::ElementsAre;
using ::testing::StartsWith;

// The published vectors of Random123.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_THAT(Philox({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_THAT(Philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                     {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

double Variance(const Tensor& x) {
  const Tensor wide = x.To(DType::kF64);
  const Tensor centred = ops::AddScalar(wide, -ops::Mean(wide).Item());
  return ops::Mean(ops::Mul(centred, centred)).Item();
}

TEST(Random, DistributionsHaveTheirMoments) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    Generator generator(1);
    const Tensor u = RandUniform({200'000}, -1, 3, generator, dtype);
    EXPECT_NEAR(ops::Mean(u.To(DType::kF64)).Item(), 1, 0.01) << Name(dtype);
    EXPECT_NEAR(Variance(u), 16 / 12.0, 0.02) << Name(dtype);
    EXPECT_GE(ops::Min(u, 0).values.Item(), -1);
    EXPECT_LT(ops::Max(u, 0).values.Item(), 3);
    const Tensor n = RandNormal({200'000}, generator, dtype);
    EXPECT_NEAR(ops::Mean(n.To(DType::kF64)).Item(), 0, 0.01) << Name(dtype);
    EXPECT_NEAR(Variance(n), 1, 0.02) << Name(dtype);
  }
}

TEST(Random, EqualSeedsGiveEqualNumbersForAnyNumberOfThreads) {
  const int threads = ComputeThreads();
  std::vector<Tensor> draws;
  for (int t : {1, 3}) {
    SetComputeThreads(t);
    Generator generator(42);
    draws.push_back(RandNormal({100'003}, generator));
    draws.push_back(RandUniform({100'003}, 0, 1, generator));
  }
  SetComputeThreads(threads);
  EXPECT_TRUE(ops::BitEqual(draws[0], draws[2]));
  EXPECT_TRUE(ops::BitEqual(draws[1], draws[3]));
  Generator other(43);
  EXPECT_FALSE(ops::BitEqual(RandNormal({100'003}, other), draws[0]));
}

TEST(Random, MemoryOrderDoesNotChangeTheNumbers) {
  Generator a(7);
  Generator b(7);
  const Tensor dense = Tensor::Empty({2, 3, 4, 5});
  const Tensor channels_last =
      Tensor::Empty({2, 3, 4, 5}, {.format = MemoryFormat::kChannelsLast});
  FillNormal(dense, 1, 2, a);
  FillNormal(channels_last, 1, 2, b);
  EXPECT_EQ(dense.ToVector<float>(), channels_last.ToVector<float>());
}

TEST(Random, StateResumesTheSequence) {
  Generator generator(9);
  (void)generator.NextDraw();
  const Generator::State state = generator.state();
  const Tensor next = RandUniform({10}, 0, 1, generator);
  Generator resumed(0);
  resumed.set_state(state);
  EXPECT_EQ(resumed.seed(), 9u);
  EXPECT_TRUE(ops::BitEqual(RandUniform({10}, 0, 1, resumed), next));
}

TEST(Random, IntegersCoverTheirRange) {
  Generator generator(3);
  const auto values = RandInt(-2, 3, {1000}, generator).ToVector<int64_t>();
  EXPECT_EQ(std::set<int64_t>(values.begin(), values.end()),
            (std::set<int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_THAT(ErrorOf([&] { (void)RandInt(3, 3, {1}, generator); }),
              StartsWith("[rand_int]"));
}

TEST(Random, PermutationsHoldEachNumberOnce) {
  Generator generator(4);
  auto order = RandPermutation(1000, generator).ToVector<int64_t>();
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(order[static_cast<size_t>(i)], i);
  }
  EXPECT_EQ(RandPermutation(0, generator).numel(), 0);
}

TEST(Random, BernoulliHitsItsProbability) {
  Generator generator(5);
  EXPECT_NEAR(ops::Sum(RandBernoulli({100'000}, 0.3, generator)).Item(), 30'000,
              600);
  EXPECT_EQ(ops::Sum(RandBernoulli({100}, 0, generator)).Item(), 0);
  EXPECT_EQ(ops::Sum(RandBernoulli({100}, 1, generator)).Item(), 100);
  EXPECT_THAT(ErrorOf([&] { (void)RandBernoulli({1}, -0.1, generator); }),
              StartsWith("[bernoulli]"));
}

TEST(Random, ConcurrentDrawsAreDisjoint) {
  Generator generator(6);
  std::vector<uint64_t> draws[2];
  std::thread threads[2];
  for (int t = 0; t < 2; ++t) {
    threads[t] = std::thread([&, t] {
      for (int i = 0; i < 1000; ++i) draws[t].push_back(generator.NextDraw());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all(draws[0].begin(), draws[0].end());
  all.insert(draws[1].begin(), draws[1].end());
  EXPECT_EQ(all.size(), 2000u);
}

TEST(Random, FillsFloatingTensorsOnly) {
  Generator generator(8);
  EXPECT_THAT(ErrorOf([&] { FillNormal(Tensor::Arange(3), 0, 1, generator); }),
              StartsWith("[normal]"));
  EXPECT_THAT(ErrorOf([&] {
                FillUniform(Tensor::Zeros({1}).Expand({3}), 0, 1, generator);
              }),
              StartsWith("[uniform]"));
}

}  // namespace
}  // namespace baton
