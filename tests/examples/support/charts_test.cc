// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/charts.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton::examples {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Measurement> Measurements() {
  return {{.variant = "single", .items = 120, .seconds = {9.1, 9.3, 9.0}},
          {.variant = "split", .items = 120, .seconds = {9.4, 9.6, 9.5}},
          {.variant = "pipelined 12",
           .split_size = 12,
           .items = 120,
           .seconds = {5.9, 5.6, 5.8}},
          {.variant = "pipelined 20",
           .split_size = 20,
           .items = 120,
           .seconds = {5.4, 5.5, 5.8}}};
}

class Charts : public ::testing::Test {
 protected:
  Charts() {
    char folder[] = "/tmp/charts_test_XXXXXX";
    folder_ = ::mkdtemp(folder);
  }
  ~Charts() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

// The first bytes of each picture tell that gnuplot drew one.
std::string Head(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(8, '\0');
  file.read(head.data(), 8);
  return head;
}

TEST_F(Charts, AreDrawnAsPngAndSvg) {
  const std::string folder = folder_ + "/new/it's";
  auto drawn =
      WriteCharts(folder, "ResNet50_x, it's \"quoted\"", Measurements());
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  ASSERT_EQ(drawn->size(), 6u);
  EXPECT_EQ(Head(folder + "/whole_or_split.png").substr(1, 3), "PNG");
  EXPECT_EQ(Head(folder + "/variants.png").substr(1, 3), "PNG");
  EXPECT_EQ(Head(folder + "/split_sizes.png").substr(1, 3), "PNG");
  EXPECT_THAT(Head(folder + "/variants.svg"), HasSubstr("<?xml"));
  EXPECT_GT(std::filesystem::file_size(folder + "/split_sizes.svg"), 1000u);
}

TEST_F(Charts, HaveNoCurveForOneSplitSize) {
  auto measurements = Measurements();
  measurements.pop_back();
  auto drawn = WriteCharts(folder_, "t", measurements);
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  EXPECT_EQ(drawn->size(), 4u);
  EXPECT_EQ(SplitSizesChart("t", measurements), "");
}

TEST_F(Charts, CompareTheFastestPipelinedVariantWithTheOthers) {
  const std::string bars = VariantsChart("t", Measurements());
  EXPECT_THAT(bars, HasSubstr("\"single\""));
  EXPECT_THAT(bars, HasSubstr("\"pipelined 20\""));
  EXPECT_THAT(bars, Not(HasSubstr("pipelined 12")));
  const std::string two = WholeOrSplitChart("t", Measurements());
  EXPECT_THAT(two, HasSubstr("\"split\""));
  EXPECT_THAT(two, Not(HasSubstr("pipelined")));
  EXPECT_EQ(WholeOrSplitChart("t", {Measurements().front()}), "");
}

TEST_F(Charts, HoldMeanAndDeviation) {
  const std::string program = VariantsChart("t", Measurements());
  EXPECT_THAT(program, HasSubstr("\"split\" 9.5 0.1\n"));
  EXPECT_THAT(SplitSizesChart("t", Measurements()),
              HasSubstr("12 5.76667 0.152753\n20 "));
}

TEST_F(Charts, SayThatGnuplotIsMissing) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder_.c_str(), 1);
  const absl::Status status =
      WriteCharts(folder_, "t", Measurements()).status();
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gnuplot is missing"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/variants.gp"));
}

TEST_F(Charts, NameTheFolderThatCannotBeMade) {
  const absl::Status status =
      WriteCharts("/proc/no", "t", Measurements()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/no"));
}

}  // namespace
}  // namespace baton::examples
