// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The program as its users meet it, with real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/examples/data_parallel/trace_spans.h"
#include "tests/examples/support/digit_files.h"
#include "tests/support/program_path.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

tools::Outcome RunLeNet(const std::string& data,
                        const std::vector<std::string>& flags) {
  const std::string program = testing::ProgramPath("lenet_data_parallel");
  std::vector<std::string> command = {
      "baton-run",  "--workers=2", "--worker_program=" + program,
      "--",         program,       "--data=" + data,
      "--epochs=6", "--batch=30",  "--optimizer=sgd,momentum=0.9",
      "--lr=0.05",  "--repeats=2", "--time_bytes=8,40004"};
  command.insert(command.end(), flags.begin(), flags.end());
  return tools::RunProgram(command);
}

TEST(LeNetDataParallel, IsAsGoodOnTwoDevicesAsOnOne) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  const tools::Outcome outcome =
      RunLeNet(WriteDigits(folder), {"--variants=1,2", "--json=" + results});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              ContainsRegex("all-reduce, ms +star +tree +ring +library\n"
                            "8 bytes( +[0-9]+[.][0-9]+){4}\n"
                            "40004 bytes( +[0-9]+[.][0-9]+){4}\n"));
  std::ifstream file(results);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const auto one = nlohmann::json::parse(line);
  ASSERT_TRUE(std::getline(file, line));
  const auto two = nlohmann::json::parse(line);
  EXPECT_EQ(one["devices"], 1);
  EXPECT_EQ(two["devices"], 2);
  for (size_t epoch = 0; epoch < 6; ++epoch)
    EXPECT_NEAR(one["losses"][epoch], two["losses"][epoch], 2e-3) << epoch;
  EXPECT_EQ(one["accuracies"], two["accuracies"]);
  EXPECT_GT(two["accuracy"], 0.95);
  for (const std::string way : {"star", "tree", "ring", "library"})
    EXPECT_GT(two[way + "_40004_ms"], 0) << way;
  EXPECT_GT(two["reducing_share"], 0);
  EXPECT_LT(two["reducing_share"], 1);
  EXPECT_THAT(outcome.output, ContainsRegex("2: .*% of the time adds up"));
  EXPECT_THAT(outcome.output, ContainsRegex("2: scaling efficiency: [01][.]"));
  const double rates[] = {one["images_per_s"], two["images_per_s"]};
  EXPECT_NEAR(two["efficiency"], rates[1] / rates[0] / 2, 1e-3);
  EXPECT_FALSE(one.contains("efficiency"));
}

TEST(LeNetDataParallel, TakesLargerBatchesAndRatesOnMoreDevices) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  const tools::Outcome outcome =
      RunLeNet(WriteDigits(folder), {"--variants=2x", "--all_reduce=tree",
                                     "--time_bytes=", "--json=" + results});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream file(results);
  const auto larger = nlohmann::json::parse(file);
  EXPECT_EQ(larger["batch"], 60);
  EXPECT_DOUBLE_EQ(larger["lr"], 0.1);
  EXPECT_EQ(larger["all_reduce"], "tree");
  EXPECT_LT(larger["losses"].back(), larger["losses"].front());
}

TEST(LeNetDataParallel, TracesAnEpochOfBothDevices) {
  const testing::TempFolder folder;
  const std::string path = folder / "trace.json";
  const tools::Outcome outcome =
      RunLeNet(WriteDigits(folder),
               {"--variants=2", "--epochs=2", "--all_reduce=library",
                "--time_bytes=", "--trace=" + path});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::vector<TracedSpan> spans = SpansOf(path);
  for (const std::string worker : {"worker1", "worker2"}) {
    constexpr size_t kSteps = 18;  // of 540 images, 30 a batch
    const auto by_hand = SpansNamed(spans, worker, "all-reduce, library");
    const auto library = SpansNamed(spans, worker, "all_reduce sum f32[");
    EXPECT_EQ(SpansNamed(spans, worker, "forward and backward").size(), kSteps);
    EXPECT_EQ(SpansNamed(spans, worker, "optimizer").size(), kSteps);
    ASSERT_EQ(by_hand.size(), kSteps);
    ASSERT_EQ(library.size(), kSteps);
    for (size_t i = 0; i < kSteps; ++i) {
      EXPECT_GT(library[i].begin, by_hand[i].begin) << i;
      EXPECT_LT(library[i].end, by_hand[i].end) << i;
    }
  }
}

TEST(LeNetDataParallel, SaysThatABatchIsLargerThanAllImages) {
  const testing::TempFolder folder;
  const tools::Outcome outcome =
      RunLeNet(WriteDigits(folder), {"--variants=2", "--batch=1000"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("no batch of 1000"));
}

TEST(LeNetDataParallel, AsksForMoreWorkers) {
  const testing::TempFolder folder;
  const tools::Outcome outcome =
      RunLeNet(WriteDigits(folder), {"--variants=3"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("--workers=3"));
}

}  // namespace
}  // namespace baton::examples
