// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/lru_cache.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace baton {
namespace {

using Cache = LruCache<int, std::string>;

std::string Get(Cache& cache, int key, const std::string& made) {
  return *cache.GetOrMake(
      key, [&] { return std::make_shared<const std::string>(made); });
}

TEST(LruCache, MakesAValueOnce) {
  Cache cache(2);
  EXPECT_EQ(Get(cache, 1, "first"), "first");
  EXPECT_EQ(Get(cache, 1, "second"), "first");
}

TEST(LruCache, DropsTheOneUsedLongestAgo) {
  Cache cache(2);
  Get(cache, 1, "a");
  Get(cache, 2, "b");
  Get(cache, 1, "");
  Get(cache, 3, "c");
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(Get(cache, 1, "new"), "a");
  EXPECT_EQ(Get(cache, 2, "new"), "new");
}

TEST(LruCache, AValueOutlivesItsPlace) {
  Cache cache(1);
  const Cache::Pointer kept = cache.GetOrMake(
      1, [] { return std::make_shared<const std::string>("kept"); });
  Get(cache, 2, "other");
  EXPECT_EQ(*kept, "kept");
}

TEST(LruCache, KeepsNothingWhenMakingThrows) {
  Cache cache(2);
  EXPECT_THROW(
      cache.GetOrMake(
          1, []() -> Cache::Pointer { throw std::runtime_error("no"); }),
      std::runtime_error);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(Get(cache, 1, "later"), "later");
}

}  // namespace
}  // namespace baton
