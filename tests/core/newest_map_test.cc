// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/newest_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace baton {
namespace {

std::vector<int> Keys(const NewestMap<int, std::string>& map) {
  std::vector<int> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

TEST(NewestMap, ForgetsTheOldest) {
  NewestMap<int, std::string> map(2);
  EXPECT_TRUE(map.Add(1, "a"));
  EXPECT_TRUE(map.Add(2, "b"));
  EXPECT_TRUE(map.Add(3, "c"));
  EXPECT_EQ(map.Find(1), nullptr);
  EXPECT_EQ(Keys(map), std::vector({3, 2}));
  EXPECT_EQ(map.size(), 2u);
}

TEST(NewestMap, KeepsTheValueThatAKeyHas) {
  NewestMap<int, std::string> map(2);
  map.Add(1, "a");
  map.Add(2, "b");
  EXPECT_FALSE(map.Add(1, "other"));
  EXPECT_EQ(*map.Find(1), "a");
  map.Add(3, "c");
  EXPECT_EQ(map.Find(1), nullptr);
}

TEST(NewestMap, ARenewedValueIsForgottenLater) {
  NewestMap<int, std::string> map(2);
  map.Add(1, "a");
  map.Add(2, "b");
  EXPECT_EQ(*map.Renew(1), "a");
  EXPECT_EQ(map.Renew(3), nullptr);
  map.Add(3, "c");
  EXPECT_EQ(Keys(map), std::vector({3, 1}));
}

TEST(NewestMap, GivesWhatIsTaken) {
  NewestMap<int, std::unique_ptr<int>> map(2);
  map.Add(1, std::make_unique<int>(7));
  EXPECT_EQ(**map.Take(1), 7);
  EXPECT_FALSE(map.Take(1).has_value());
  EXPECT_EQ(map.size(), 0u);
  EXPECT_TRUE(map.Add(1, std::make_unique<int>(8)));
}

}  // namespace
}  // namespace baton
