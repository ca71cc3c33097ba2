// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace baton::dist {
namespace {

// Keys that are few, so that what is erased was there, and what is found may
// not be, and neighbours, so that they share slots.
TEST(RowIndex, HasWhatAMapHasHoweverKeysComeAndGo) {
  RowIndex index;
  std::map<int64_t, RowIndex::Row> map;
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    const auto key = static_cast<int64_t>(random() % 700) - 350;
    index.Prefetch(key);
    if (map.contains(key) && random() % 2 == 0) {
      index.Erase(key);
      map.erase(key);
    } else {
      RowIndex::Row& row = index.FindOrAdd(key);
      EXPECT_EQ(row, map.contains(key) ? map[key] : RowIndex::kNone);
      row = map[key] = i;
    }
    EXPECT_EQ(index.size(), map.size());
  }
  for (int64_t key = -400; key < 400; ++key) {
    const auto found = map.find(key);
    EXPECT_EQ(index.Find(key),
              found == map.end() ? RowIndex::kNone : found->second);
  }
  index.ForEach([&](int64_t key, RowIndex::Row row) {
    EXPECT_EQ(map.extract(key).mapped(), row);
  });
  EXPECT_TRUE(map.empty());
}

}  // namespace
}  // namespace baton::dist
