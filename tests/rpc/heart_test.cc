// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/heart.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using baton::testing::IsOk;

TEST(Heart, EachWatcherSeesABeatOnce) {
  const auto heart = Heart::Make();
  ASSERT_THAT(heart, IsOk());
  (*heart)->Beat();
  const auto one = HeartWatch::Open((*heart)->fd());
  const auto other = HeartWatch::Open((*heart)->fd());
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(other, IsOk());
  EXPECT_FALSE((*one)->HasBeaten());
  (*heart)->Beat();
  (*heart)->Beat();
  EXPECT_TRUE((*one)->HasBeaten());
  EXPECT_FALSE((*one)->HasBeaten());
  EXPECT_TRUE((*other)->HasBeaten());
}

TEST(Heart, IsWrittenByNobodyElse) {
  const auto heart = Heart::Make();
  ASSERT_THAT(heart, IsOk());
  const int fd = (*heart)->fd().get();
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
            MAP_FAILED);
  EXPECT_LT(pwrite(fd, "x", 1, 0), 0);
  EXPECT_LT(ftruncate(fd, 0), 0);
  (*heart)->Beat();
}

TEST(Heart, MayEndBeforeItsWatcher) {
  auto heart = Heart::Make();
  ASSERT_THAT(heart, IsOk());
  const auto watch = HeartWatch::Open((*heart)->fd());
  ASSERT_THAT(watch, IsOk());
  (*heart)->Beat();
  heart->reset();
  EXPECT_TRUE((*watch)->HasBeaten());
  EXPECT_FALSE((*watch)->HasBeaten());
}

TEST(Heart, IsTakenForNothingElse) {
  EXPECT_FALSE(
      HeartWatch::Open(Fd(open("/dev/null", O_RDWR | O_CLOEXEC))).ok());
  EXPECT_FALSE(HeartWatch::Open(Fd()).ok());
  const Fd loose(memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(loose.get(), 4096), 0);
  EXPECT_FALSE(HeartWatch::Open(loose).ok());
  const auto segment = Segment::Create(4096);
  ASSERT_THAT(segment, IsOk());
  EXPECT_FALSE(HeartWatch::Open(segment->fd()).ok());
}

}  // namespace
}  // namespace baton::rpc
