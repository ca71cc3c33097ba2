// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/channels/segment.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using baton::testing::IsOk;

TEST(SharedHeartbeat, EachWatcherSeesABeatOnce) {
  const auto heartbeat = SharedHeartbeat::Make();
  ASSERT_THAT(heartbeat, IsOk());
  (*heartbeat)->Beat();
  const auto one = HeartbeatWatch::Open((*heartbeat)->fd());
  const auto other = HeartbeatWatch::Open((*heartbeat)->fd());
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(other, IsOk());
  EXPECT_FALSE((*one)->HasBeaten());
  (*heartbeat)->Beat();
  (*heartbeat)->Beat();
  EXPECT_TRUE((*one)->HasBeaten());
  EXPECT_FALSE((*one)->HasBeaten());
  EXPECT_TRUE((*other)->HasBeaten());
}

TEST(SharedHeartbeat, IsWrittenByNobodyElse) {
  const auto heartbeat = SharedHeartbeat::Make();
  ASSERT_THAT(heartbeat, IsOk());
  const int fd = (*heartbeat)->fd().get();
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
            MAP_FAILED);
  EXPECT_LT(pwrite(fd, "x", 1, 0), 0);
  EXPECT_LT(ftruncate(fd, 0), 0);
  (*heartbeat)->Beat();
}

TEST(SharedHeartbeat, MayEndBeforeItsWatcher) {
  auto heartbeat = SharedHeartbeat::Make();
  ASSERT_THAT(heartbeat, IsOk());
  const auto watch = HeartbeatWatch::Open((*heartbeat)->fd());
  ASSERT_THAT(watch, IsOk());
  (*heartbeat)->Beat();
  heartbeat->reset();
  EXPECT_TRUE((*watch)->HasBeaten());
  EXPECT_FALSE((*watch)->HasBeaten());
}

TEST(SharedHeartbeat, IsTakenForNothingElse) {
  EXPECT_FALSE(
      HeartbeatWatch::Open(Fd(open("/dev/null", O_RDWR | O_CLOEXEC))).ok());
  EXPECT_FALSE(HeartbeatWatch::Open(Fd()).ok());
  const Fd loose(memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(loose.get(), 4096), 0);
  EXPECT_FALSE(HeartbeatWatch::Open(loose).ok());
  const auto segment = Segment::Create(4096);
  ASSERT_THAT(segment, IsOk());
  EXPECT_FALSE(HeartbeatWatch::Open(segment->fd()).ok());
}

}  // namespace
}  // namespace baton::rpc
