// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/status.h"
#include "tests/support/error_of.h"
#include "tests/support/golden/golden_case.h"

namespace baton::data {
namespace {

using ::baton::test::ErrorOf;
using ::baton::testing::GoldenCase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Golden(const std::string& name) {
  const Tensor order = GoldenCase("layers.safetensors", "samplers")[name];
  EXPECT_TRUE(order.defined()) << name;
  return order.defined() ? order.ToVector<int64_t>() : std::vector<int64_t>();
}

TEST(Permutation, IsPyTorchs) {
  EXPECT_EQ(Permutation(1000, 123456789012), Golden("permutation"));
}

TEST(RandomSampler, OrdersAsPyTorchsDoes) {
  EXPECT_EQ(RandomSampler(23, {.seed = 5}).Order(0), Golden("random"));
}

TEST(RandomSampler, HasAnotherOrderEachEpochAndTheSameOneAgain) {
  const RandomSampler sampler(50, {.seed = 1});
  EXPECT_EQ(sampler.Order(3), sampler.Order(3));
  EXPECT_NE(sampler.Order(3), sampler.Order(4));
  std::vector<int64_t> sorted = sampler.Order(3);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, SequentialSampler(50).Order(0));
}

TEST(RandomSampler, GivesAsManySamplesAsItIsAskedFor) {
  const RandomSampler few(10, {.samples = 4});
  EXPECT_EQ(few.Order(0).size(), 4U);
  const std::vector<int64_t> many = RandomSampler(10, {.samples = 25}).Order(0);
  ASSERT_EQ(many.size(), 25U);
  for (int part = 0; part < 2; ++part) {
    EXPECT_EQ(std::set<int64_t>(many.begin() + 10 * part,
                                many.begin() + 10 * (part + 1))
                  .size(),
              10U);
  }
  const std::vector<int64_t> drawn =
      RandomSampler(10, {.replacement = true, .samples = 1000}).Order(0);
  for (int64_t i = 0; i < 10; ++i)
    EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), i), 100, 50);
}

TEST(WeightedSampler, DrawsInProportionToWeights) {
  const WeightedSampler sampler({1, 0, 3, 6}, {.samples = 10000});
  const std::vector<int64_t> drawn = sampler.Order(0);
  ASSERT_EQ(drawn.size(), 10000U);
  const std::vector<double> expected = {1000, 0, 3000, 6000};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), i),
                expected[static_cast<size_t>(i)], i == 1 ? 0 : 200);
  }
  EXPECT_NE(drawn, sampler.Order(1));
  EXPECT_EQ(drawn, sampler.Order(0));
}

TEST(WeightedSampler, WithoutReplacementDrawsEachOnceTheHeavyFirst) {
  const std::vector<double> weights = {1, 0, 100, 1, 1};
  int heavy_first = 0;
  for (int64_t epoch = 0; epoch < 200; ++epoch) {
    const auto order =
        WeightedSampler(weights, {.samples = 4, .replacement = false})
            .Order(epoch);
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()),
              (std::set<int64_t>{0, 2, 3, 4}));
    heavy_first += order[0] == 2;
  }
  EXPECT_GT(heavy_first, 180);  // 194 are expected
}

TEST(WeightedSampler, RefusesWhatItCannotDraw) {
  EXPECT_THAT(ErrorOf([] { WeightedSampler({0, 0}); }), HasSubstr("weight"));
  EXPECT_THAT(ErrorOf([] { WeightedSampler({1, -1}); }), HasSubstr("from 0"));
  EXPECT_THROW(WeightedSampler({1, 0, 1}, {.samples = 3, .replacement = false}),
               Error);
}

TEST(DistributedSampler, DealsOutAsPyTorchsDoes) {
  for (const bool drop_last : {false, true}) {
    for (const int64_t epoch : {0, 3}) {
      for (int64_t rank = 0; rank < 4; ++rank) {
        const DistributedSampler sampler(
            23, {.ranks = 4, .rank = rank, .seed = 11, .drop_last = drop_last});
        EXPECT_EQ(sampler.Order(epoch),
                  Golden("distributed." + std::to_string(drop_last) + "." +
                         std::to_string(epoch) + "." + std::to_string(rank)));
        EXPECT_EQ(sampler.size(), drop_last ? 5 : 6);
      }
    }
  }
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(
        DistributedSampler(2, {.ranks = 7, .rank = rank, .shuffle = false})
            .Order(0),
        Golden("few." + std::to_string(rank)));
  }
}

TEST(DistributedSampler, RefusesRanksThatAreNotThere) {
  EXPECT_THROW(DistributedSampler(8, {.ranks = 2, .rank = 2}), Error);
  EXPECT_THROW(DistributedSampler(0, {}), Error);
  EXPECT_THAT(
      ErrorOf([] { DistributedSampler(2, {.ranks = 3, .drop_last = true}); }),
      HasSubstr("less than one"));
}

TEST(FixedBatches, CutTheOrder) {
  const auto samples = std::make_shared<SequentialSampler>(7);
  EXPECT_THAT(
      FixedBatches(samples, 3).Batches(0),
      ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6)));
  EXPECT_THAT(FixedBatches(samples, 3, true).Batches(0),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  EXPECT_THROW(FixedBatches(samples, 8, true), Error);
  EXPECT_THROW(FixedBatches(samples, 0), Error);
}

TEST(Identity, DiffersWhereOrdersDo) {
  const auto weighted = [](double w) {
    return WeightedSampler({1, w}).Identity();
  };
  const std::vector<std::vector<int64_t>> all = {
      SequentialSampler(8).Identity(),
      SequentialSampler(9).Identity(),
      RandomSampler(8).Identity(),
      RandomSampler(8, {.seed = 1}).Identity(),
      RandomSampler(8, {.replacement = true}).Identity(),
      DistributedSampler(8, {.ranks = 2}).Identity(),
      DistributedSampler(8, {.ranks = 2, .rank = 1}).Identity(),
      weighted(1),
      weighted(2),
      FixedBatches(std::make_shared<SequentialSampler>(8), 2).Identity(),
      FixedBatches(std::make_shared<SequentialSampler>(8), 3).Identity()};
  EXPECT_EQ(std::set<std::vector<int64_t>>(all.begin(), all.end()).size(),
            all.size());
}

}  // namespace
}  // namespace baton::data
