// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "rpc/channels/shared_blocks.h"

namespace baton::rpc {
namespace {

constexpr uint64_t kPage = 4096;

TEST(Arena, HasNothingWithoutSegments) {
  Arena arena;
  EXPECT_FALSE(arena.Take(1).has_value());
  EXPECT_EQ(arena.capacity(), 0u);
}

TEST(Arena, GivesWholePagesFromTheLowestOn) {
  Arena arena;
  arena.Add(7, 4 * kPage);
  EXPECT_EQ(arena.Take(1)->offset, 0u);
  const auto second = arena.Take(kPage + 1);
  EXPECT_EQ(second->segment, 7u);
  EXPECT_EQ(second->offset, kPage);
  EXPECT_TRUE(arena.HasRoom(kPage));
  EXPECT_FALSE(arena.HasRoom(kPage + 1));
  EXPECT_EQ(arena.Take(0)->offset, 3 * kPage);
  EXPECT_FALSE(arena.HasRoom(1));
  EXPECT_FALSE(arena.Take(1).has_value());
}

TEST(Arena, JoinsWhatIsGivenBackWithBothNeighbours) {
  Arena arena;
  arena.Add(1, 3 * kPage);
  const auto a = arena.Take(kPage), b = arena.Take(kPage), c = arena.Take(1);
  arena.Give(*a);
  arena.Give(*c);
  EXPECT_FALSE(arena.Take(2 * kPage).has_value());
  arena.Give(*b);
  EXPECT_EQ(arena.Take(3 * kPage)->offset, 0u);
}

TEST(Arena, GoesOnToTheNextSegment) {
  Arena arena;
  arena.Add(1, kPage);
  arena.Add(2, 2 * kPage);
  EXPECT_EQ(arena.Take(2 * kPage)->segment, 2u);
  EXPECT_EQ(arena.Take(kPage)->segment, 1u);
  EXPECT_EQ(arena.capacity(), 3 * kPage);
}

// Against a map of every page.
TEST(Arena, NeverGivesAPageTwiceAndLosesNone) {
  constexpr uint64_t kPages = 64;
  std::mt19937 random(1);
  Arena arena;
  arena.Add(1, kPages * kPage);
  std::vector<bool> taken(kPages);
  std::vector<Arena::Block> blocks;
  for (int step = 0; step < 20000; ++step) {
    if (!blocks.empty() && random() % 2 == 0) {
      const size_t i = random() % blocks.size();
      const Arena::Block block = blocks[i];
      for (uint64_t p = 0; p * kPage < block.bytes; ++p) {
        taken.at(block.offset / kPage + p) = false;
      }
      arena.Give(block);
      blocks[i] = blocks.back();
      blocks.pop_back();
      continue;
    }
    const uint64_t bytes = random() % (9 * kPage) + 1;
    const auto block = arena.Take(bytes);
    if (!block.has_value()) continue;
    ASSERT_EQ(block->offset % kPage, 0u);
    for (uint64_t p = 0; p * kPage < bytes; ++p) {
      ASSERT_FALSE(taken.at(block->offset / kPage + p));
      taken[block->offset / kPage + p] = true;
    }
    blocks.push_back(*block);
  }
  for (const Arena::Block& block : blocks) arena.Give(block);
  EXPECT_EQ(arena.Take(kPages * kPage)->offset, 0u);
}

}  // namespace
}  // namespace baton::rpc
