// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "rpc/transports/grpc_stream.h"

namespace baton::rpc {
namespace {

TEST(StreamCount, SaysWhatEachWorkerHasNotTaken) {
  StreamCount streams;
  const uint64_t first = streams.Add(), second = streams.Add();
  streams.Add();
  streams.Owes(first, "bob", 10);
  streams.Owes(second, "bob", 32);
  EXPECT_EQ(streams.Describe(),
            "worker bob has not taken 42 bytes that were on their way; "
            "1 connections to nobody in particular");
}

TEST(StreamCount, HasWordsForNoStreamsToo) {
  StreamCount streams;
  streams.Remove(streams.Add());
  streams.AwaitNone();
  EXPECT_EQ(streams.count(), 0);
  EXPECT_EQ(streams.Describe(), "its own threads, which have not ended yet");
}

}  // namespace
}  // namespace baton::rpc
