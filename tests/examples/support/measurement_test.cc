// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/measurement.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/test_files.h"

namespace baton::examples {
namespace {

Measurement Sample() {
  return {.variant = "pipelined split 20",
          .split_size = 20,
          .items = 120,
          .seconds = {4.0, 1.0, 2.0, 3.0},
          .loss = 0.25};
}

TEST(Measurement, SummaryHasMedianMeanAndSampleDeviation) {
  const Summary s = Summarize(Sample());
  EXPECT_DOUBLE_EQ(s.median_s, 2.5);
  EXPECT_DOUBLE_EQ(s.mean_s, 2.5);
  EXPECT_NEAR(s.std_s, 1.2909944, 1e-6);
  EXPECT_DOUBLE_EQ(s.items_per_s, 48.0);
}

TEST(Measurement, OneRepeatHasNoDeviation) {
  Measurement once = Sample();
  once.seconds = {2.0};
  EXPECT_EQ(Summarize(once).std_s, 0.0);
}

TEST(Measurement, JsonLineCarriesEveryFigure) {
  const auto line = nlohmann::json::parse(ToJsonLine(Sample()));
  EXPECT_EQ(line["variant"], "pipelined split 20");
  EXPECT_EQ(line["split_size"], 20);
  EXPECT_EQ(line["repeats"], 4);
  EXPECT_DOUBLE_EQ(line["images_per_s"], 48.0);
  EXPECT_DOUBLE_EQ(line["loss"], 0.25);
}

TEST(Measurement, PathsBetweenStagesAreInTheJsonLineAndPrinted) {
  Measurement sample = Sample();
  EXPECT_EQ(FormatPaths({sample}), "");
  sample.details = {{"paths", std::vector<StagePath>{
                                  {0, 1, "shared memory", "from stage 0: why"},
                                  {0, 2, "local"}}}};
  const auto line = nlohmann::json::parse(ToJsonLine(sample));
  ASSERT_EQ(line["paths"].size(), 2U);
  EXPECT_EQ(line["paths"][0]["from"], 0);
  EXPECT_EQ(line["paths"][1]["to"], 2);
  EXPECT_EQ(line["paths"][0]["path"], "shared memory");
  EXPECT_EQ(line["paths"][0]["why_no_window"], "from stage 0: why");
  EXPECT_FALSE(line["paths"][1].contains("why_no_window"));
  EXPECT_EQ(FormatPaths({sample}),
            "pipelined split 20: stage 0 to 1 shared memory, stage 0 to 2 "
            "local\n");
}

TEST(Measurement, JsonLineCarriesTheDetails) {
  Measurement sample = Sample();
  sample.details = {{"device", "cuda:0"},
                    {"graph", true},
                    {"batch", int64_t{120}},
                    {"losses", std::vector<double>{0.5, 0.1}},
                    {"peak_memory_mib", 1.5}};
  const auto line = nlohmann::json::parse(ToJsonLine(sample));
  EXPECT_EQ(line["device"], "cuda:0");
  EXPECT_EQ(line["graph"], true);
  EXPECT_EQ(line["batch"], 120);
  EXPECT_EQ(line["losses"], (std::vector<double>{0.5, 0.1}));
  EXPECT_EQ(line["peak_memory_mib"], 1.5);
}

TEST(Measurement, SaysWhatWasCounted) {
  Measurement sample = Sample();
  sample.item = "tokens";
  EXPECT_EQ(nlohmann::json::parse(ToJsonLine(sample))["tokens_per_s"], 48.0);
  EXPECT_NE(FormatTable({sample}).find("  tokens/s"), std::string::npos);
}

TEST(Measurement, BubblesStandBesideWhatWasPredicted) {
  Measurement pipelined = Sample();
  pipelined.details = DetailsOf(
      {.schedule = "1f1b", .bubble = 0.25, .predicted_bubble = 0.2, .held = 2});
  EXPECT_EQ(FormatBubbles({Sample(), pipelined}),
            "pipelined split 20: schedule 1f1b, bubble 25.0% measured, 20.0% "
            "predicted; holds 2 micro-batches\n");
  const auto line = nlohmann::json::parse(ToJsonLine(pipelined));
  EXPECT_EQ(line["schedule"], "1f1b");
  EXPECT_EQ(line["bubble"], 0.25);
  EXPECT_EQ(line["predicted_bubble"], 0.2);
  EXPECT_EQ(line["held"], 2);
}

TEST(Measurement, TableComparesWithTheFirstVariant) {
  Measurement single = Sample();
  single.variant = "single";
  single.seconds = {5.0};
  const std::string table = FormatTable({single, Sample()});
  EXPECT_NE(table.find("1.00x"), std::string::npos) << table;
  EXPECT_NE(table.find("2.00x"), std::string::npos) << table;
}

TEST(Measurement, TableHasNoColumnThatSaysNothing) {
  const auto of = [](const std::string& variant, const std::string& compared,
                     double seconds) {
    return Measurement{.variant = variant,
                       .items = 8,
                       .seconds = {seconds},
                       .item = "rows",
                       .compared = compared};
  };
  EXPECT_EQ(
      FormatTable({of("read by 1", "read", 2), of("train by 1", "train", 4)}),
      "variant       seconds     rows/s\n"
      "read by 1       2.000       4.00\n"
      "train by 1      4.000       2.00\n");
  EXPECT_EQ(
      FormatTable({of("read by 1", "read", 2), of("train by 1", "train", 4),
                   of("train by 2", "train", 2)}),
      "variant       seconds     rows/s  speed-up\n"
      "read by 1       2.000       4.00     1.00x\n"
      "train by 1      4.000       2.00     1.00x\n"
      "train by 2      2.000       4.00     2.00x\n");
  Measurement trained = of("train by 1", "train", 4);
  trained.loss = 0.5;
  trained.seconds = {4, 4};
  EXPECT_EQ(
      FormatTable({of("read by 1", "read", 2), trained}),
      "variant      median s     mean s     std s     rows/s       loss\n"
      "read by 1       2.000      2.000     0.000       4.00          -\n"
      "train by 1      4.000      4.000     0.000       2.00    0.50000\n");
  EXPECT_FALSE(
      nlohmann::json::parse(ToJsonLine(of("a", "", 1))).contains("loss"));
}

TEST(Measurement, WritesOneLineEach) {
  const testing::TempFolder folder;
  const std::string path = folder / "measurements.jsonl";
  ASSERT_TRUE(WriteJsonLines(path, {Sample(), Sample()}).ok());
  std::ifstream file(path);
  std::string line;
  int lines = 0;
  while (std::getline(file, line)) {
    EXPECT_TRUE(nlohmann::json::accept(line));
    ++lines;
  }
  EXPECT_EQ(lines, 2);
}

TEST(Measurement, UnwritablePathIsAnErrorThatNamesIt) {
  const absl::Status status =
      WriteJsonLines("/nowhere/at/all.jsonl", {Sample()});
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("/nowhere/at/all.jsonl"),
            std::string::npos);
}

TEST(Percentiles, AreThoseOfTheValues) {
  std::vector<double> values;
  for (int i = 100; i > 0; --i) values.push_back(i);
  EXPECT_EQ(PercentilesOf(values), (std::vector<double>{51, 76, 91, 96}));
  EXPECT_EQ(PercentilesOf({}), (std::vector<double>{0, 0, 0, 0}));
}

TEST(Percentiles, ArePrintedByVariantAndName) {
  const std::vector<Measurement> measurements = {
      {.variant = "a",
       .seconds = {1},
       .details = {{"latency", std::vector<double>{1, 2, 3, 4}},
                   {"other", std::vector<double>{5}}}}};
  EXPECT_EQ(FormatPercentiles(measurements, {"latency"}),
            "                 p50        p75        p90        p95\n"
            "a latency        1.0        2.0        3.0        4.0\n");
}

}  // namespace
}  // namespace baton::examples
