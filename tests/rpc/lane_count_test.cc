// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/lane_count.h"

#include <gtest/gtest.h>

namespace baton::rpc {
namespace {

TEST(LaneCount, SaysWhatEachWorkerHasNotTaken) {
  LaneCount lanes;
  const uint64_t control = lanes.Add(), bulk = lanes.Add();
  lanes.Add();
  lanes.Owes(control, "bob", 10);
  lanes.Owes(bulk, "bob", 32);
  EXPECT_EQ(lanes.Describe(),
            "worker bob has not taken 42 bytes that were on their way; "
            "1 connections to nobody in particular");
}

TEST(LaneCount, HasWordsForNoLanesToo) {
  LaneCount lanes;
  lanes.Remove(lanes.Add());
  lanes.AwaitNone();
  EXPECT_EQ(lanes.count(), 0);
  EXPECT_EQ(lanes.Describe(), "its own threads, which have not ended yet");
}

}  // namespace
}  // namespace baton::rpc
