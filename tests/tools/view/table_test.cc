// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace baton::tools {
namespace {

using rpc::View;
using Unit = View::Unit;

View Sample() {
  return {.name = "things",
          .columns = {{"owner", Unit::kText},
                      {"held_bytes", Unit::kBytes},
                      {"age", Unit::kMilliseconds},
                      {"count", Unit::kCount}},
          .rows = {{"alice", "1400000", "3200", "7"},
                   {"bob", "", "0.25", "12345"}}};
}

TEST(Table, ColumnsAreAlignedAndNumbersStandToTheRight) {
  EXPECT_EQ(TableText(Sample()),
            "things: 2\n"
            "OWNER  HELD BYTES     AGE  COUNT\n"
            "alice      1.4 MB   3.2 s      7\n"
            "bob             -  250 us  12345\n");
}

TEST(Table, ATableWithoutRowsIsOneLine) {
  View empty = Sample();
  empty.rows.clear();
  EXPECT_EQ(TableText(empty), "things: none\n");
}

TEST(Table, LinesAreCutAtTheWidthAndHeadingsBold) {
  EXPECT_EQ(TableText(Sample(), {.color = true, .width = 10}),
            "\033[1mthings\033[0m: 2\n"
            "\033[1mOWNER  HEL\033[0m\n"
            "alice     \n"
            "bob       \n");
}

TEST(Table, WhatAnotherWorkerSaysCannotSteerTheTerminal) {
  View table = Sample();
  table.rows = {{"a\033[2Jb\n", "1", "1", "1"}};
  EXPECT_THAT(TableText(table), ::testing::HasSubstr("a?[2Jb?"));
}

TEST(Table, ARowThatIsTooShortIsFilled) {
  View table = Sample();
  table.rows = {{"alice"}};
  EXPECT_THAT(TableText(table), ::testing::HasSubstr("alice"));
  const auto json = nlohmann::json::parse(TablesJson({table}));
  EXPECT_EQ(json["things"][0].size(), 1u);
}

TEST(Table, JsonHasNumbersAsNumbersAndNullForWhatIsNotKnown) {
  View other = Sample();
  other.name = "others";
  other.rows = {};
  const auto json = nlohmann::json::parse(TablesJson({Sample(), other}));
  EXPECT_EQ(json["things"].size(), 2u);
  EXPECT_EQ(json["things"][0]["owner"], "alice");
  EXPECT_EQ(json["things"][0]["held_bytes"], 1400000);
  EXPECT_EQ(json["things"][1]["age"], 0.25);
  EXPECT_TRUE(json["things"][1]["held_bytes"].is_null());
  EXPECT_TRUE(json["others"].empty());
}

TEST(Table, JsonIsValidWhateverTheBytes) {
  View table = Sample();
  table.rows = {{"\xff\xfe\"", "1", "1", "1"}};
  EXPECT_FALSE(nlohmann::json::parse(TablesJson({table})).empty());
}

TEST(Table, SizesAndTimesReadWell) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1500), "1.5 kB");
  EXPECT_EQ(FormatBytes(999'999), "1 MB");
  EXPECT_EQ(FormatBytes(2.5e12), "2.5 TB");
  EXPECT_EQ(FormatMilliseconds(0), "0 ms");
  EXPECT_EQ(FormatMilliseconds(0.034), "34 us");
  EXPECT_EQ(FormatMilliseconds(12.51), "12.5 ms");
  EXPECT_EQ(FormatMilliseconds(245'000), "4m 05s");
  EXPECT_EQ(FormatMilliseconds(7'380'000), "2h 03m");
}

}  // namespace
}  // namespace baton::tools
