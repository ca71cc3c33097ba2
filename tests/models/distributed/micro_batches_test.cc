// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/micro_batches.h"

#include <gtest/gtest.h>

#include "core/status.h"

namespace baton::dist {
namespace {

TEST(SplitRows, LeavesARaggedLastPart) {
  EXPECT_EQ(SplitRows(10, 4), (std::vector<RowRange>{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(SplitRows(8, 4), (std::vector<RowRange>{{0, 4}, {4, 8}}));
  EXPECT_EQ(SplitRows(3, 100), (std::vector<RowRange>{{0, 3}}));
}

TEST(SplitRows, TakesSizesThatAddUp) {
  const std::vector<int64_t> sizes = {1, 4, 2};
  EXPECT_EQ(SplitRows(7, sizes),
            (std::vector<RowRange>{{0, 1}, {1, 5}, {5, 7}}));
  EXPECT_THROW(SplitRows(8, sizes), Error);
  EXPECT_THROW(SplitRows(6, sizes), Error);
  EXPECT_THROW(SplitRows(0, std::vector<int64_t>{}), Error);
  EXPECT_THROW(SplitRows(6, std::vector<int64_t>{0, 6}), Error);
  EXPECT_THROW(SplitRows(6, std::vector<int64_t>{-1, 7}), Error);
}

TEST(SplitRows, RefusesEmptyBatchesAndSplits) {
  EXPECT_THROW(SplitRows(0, 4), Error);
  EXPECT_THROW(SplitRows(4, 0), Error);
}

TEST(GroupSizes, AreRelativeToTheirMean) {
  EXPECT_EQ(GroupSizes({{0, 2}, {2, 4}, {4, 6}}),
            (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(GroupSizes({{0, 1}, {1, 2}, {2, 8}}, 2),
            (std::vector<double>{0.5, 1.5}));
}

TEST(Ungrouped, AnInstructionOfAGroupIsThatOfItsMicroBatchesInTurn) {
  const Program groups = {{StageOp::kForward, 0, 0},
                          {StageOp::kForward, 0, 1},
                          {StageOp::kBackward, 0, 0}};
  EXPECT_EQ(Ungrouped(groups, 2, 3), (Program{{StageOp::kForward, 0, 0},
                                              {StageOp::kForward, 0, 1},
                                              {StageOp::kForward, 0, 2},
                                              {StageOp::kBackward, 0, 0},
                                              {StageOp::kBackward, 0, 1}}));
  EXPECT_EQ(Ungrouped(groups, 1, 2), groups);
}

}  // namespace
}  // namespace baton::dist
