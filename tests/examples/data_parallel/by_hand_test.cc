// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/data_parallel/by_hand.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/rpc/collectives/groups.h"

namespace baton::examples {
namespace {

using testing::Fails;
using testing::Groups;
using testing::IsOk;
using testing::OnEach;

Digits DigitsOf(int64_t count) {
  Generator generator(1);
  return {.images = RandNormal({count, 1, 28, 28}, generator),
          .labels = Tensor::Arange(count)};
}

TEST(SplitBatch, GivesPartsThatAreAsEqualAsCanBe) {
  const Digits batch = DigitsOf(7);
  const auto parts = SplitBatch(batch, 3);
  ASSERT_THAT(parts, IsOk());
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_EQ((*parts)[0].labels.ToVector<int64_t>(),
            (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ((*parts)[1].labels.ToVector<int64_t>(),
            (std::vector<int64_t>{3, 4}));
  EXPECT_EQ((*parts)[2].labels.ToVector<int64_t>(),
            (std::vector<int64_t>{5, 6}));
  EXPECT_TRUE(ops::BitEqual((*parts)[2].images, batch.images.Slice(0, 5, 7)));
}

TEST(SplitBatch, RefusesMorePartsThanSamples) {
  EXPECT_THAT(SplitBatch(DigitsOf(2), 3),
              Fails(absl::StatusCode::kInvalidArgument, "no 3 parts"));
}

TEST(Scatter, GivesEachMemberItsPartUntilThereAreNoMore) {
  const Groups groups(3);
  const Digits batch = DigitsOf(7);
  const auto parts = SplitBatch(batch, 3);
  ASSERT_THAT(parts, IsOk());
  OnEach(3, [&](size_t rank) {
    const auto part =
        Scatter(*groups[rank], rank == 0 ? *parts : std::vector<Digits>());
    ASSERT_THAT(part, IsOk());
    ASSERT_TRUE(part->has_value());
    EXPECT_EQ((*part)->of, 7);
    EXPECT_TRUE(ops::BitEqual((*part)->digits.images, (*parts)[rank].images));
    EXPECT_TRUE(ops::BitEqual((*part)->digits.labels, (*parts)[rank].labels));
    const auto end = Scatter(*groups[rank], {});
    ASSERT_THAT(end, IsOk());
    EXPECT_FALSE(end->has_value());
  });
}

class AllReduceByHand
    : public ::testing::TestWithParam<std::tuple<AllReduceWay, int>> {};

TEST_P(AllReduceByHand, GivesAllTheSameSums) {
  const AllReduceWay way = std::get<0>(GetParam());
  const Groups groups(std::get<1>(GetParam()));
  const auto given = [](size_t rank, int64_t count) {
    Generator generator(100 + rank);
    return RandNormal({count}, generator);
  };
  // Fewer elements than members, some that these do not divide, and many.
  for (const int64_t count : {1, 7, 10'001}) {
    Tensor expected = Tensor::Zeros({count});
    for (size_t rank = 0; rank < groups.size(); ++rank)
      ops::AddInto(expected, given(rank, count));
    std::vector<Tensor> sums;
    for (size_t rank = 0; rank < groups.size(); ++rank)
      sums.push_back(given(rank, count));
    OnEach(groups.size(), [&](size_t rank) {
      EXPECT_THAT(AllReduce(*groups[rank], sums[rank], way), IsOk());
    });
    EXPECT_TRUE(ops::AllClose(sums[0], expected, 1e-5, 1e-5)) << count;
    for (const Tensor& sum : sums)
      EXPECT_TRUE(ops::BitEqual(sum, sums[0])) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, AllReduceByHand,
    ::testing::Combine(::testing::Values(AllReduceWay::kStar,
                                         AllReduceWay::kTree,
                                         AllReduceWay::kRing,
                                         AllReduceWay::kLibrary),
                       ::testing::Values(1, 2, 3, 6)),
    [](const auto& info) {
      return std::string(Name(std::get<0>(info.param))) +
             std::to_string(std::get<1>(info.param));
    });

TEST(AllReduceWays, AreKnownByName) {
  EXPECT_EQ(*ParseAllReduceWay("tree"), AllReduceWay::kTree);
  EXPECT_THAT(ParseAllReduceWay("line"),
              Fails(absl::StatusCode::kInvalidArgument, "'line'"));
}

}  // namespace
}  // namespace baton::examples
