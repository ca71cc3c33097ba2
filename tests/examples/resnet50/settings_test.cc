// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/reflection.h"
#include "models/distributed/schedules.h"
#include "optim/adam.h"
#include "tests/support/test_files.h"
#include "tools/command_line.h"

namespace baton::examples {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SettingsFromFlags, TakesSchedulesByNameOrFromAFile) {
  const absl::FlagSaver saver;
  testing::TempFolder folder;
  const std::string file = folder.Write(
      "order.txt", "schedule mine\nworker 0: 0F0 0BW0\nworker 1: 1F0 1BW0\n");
  const auto choice = [](const std::vector<std::string>& flags) {
    const absl::FlagSaver one;
    EXPECT_TRUE(tools::ReadFlags(flags).ok());
    auto settings = SettingsFromFlags();
    return settings.ok() ? absl::StatusOr<dist::ScheduleChoice>(
                               std::move(settings->schedule))
                         : settings.status();
  };
  EXPECT_EQ(choice({}).value().name, "gpipe");
  for (const std::string& name : dist::ScheduleNames())
    EXPECT_EQ(choice({"--schedule=" + name}).value().name, name);
  EXPECT_EQ(choice({"--schedule_file=" + file}).value().given->name, "mine");
  EXPECT_EQ(choice({"--most_held=1.5"}).value().most_held, 1.5);
  EXPECT_THAT(std::string(choice({"--schedule=fast"}).status().message()),
              HasSubstr("zb-v or auto, not 'fast'"));
  const auto why_not = [&](const std::string& path) {
    return std::string(choice({"--schedule_file=" + path}).status().message());
  };
  EXPECT_THAT(why_not(file + "x"),
              AllOf(StartsWith("--schedule_file: "),
                    HasSubstr("No such file or directory")));
  EXPECT_THAT(why_not(folder.Write("bad.txt", "schedule x\nworker 0: 0G0\n")),
              HasSubstr("bad.txt: line 2: expected instructions"));
  EXPECT_FALSE(choice({"--most_held=0.5"}).ok());
}

TEST(SettingsFromFlags, TakesOptimizersAndSchedulesByName) {
  const absl::FlagSaver saver;
  const auto settings = [](const std::vector<std::string>& flags) {
    const absl::FlagSaver one;
    EXPECT_TRUE(tools::ReadFlags(flags).ok());
    return SettingsFromFlags();
  };
  const Stepping usual = settings({}).value().stepping;
  EXPECT_EQ(usual.optimizer.kind, "sgd");
  EXPECT_EQ(usual.optimizer.state_tensors(), 0);
  EXPECT_EQ(usual.RateOver(100)(50), usual.optimizer.lr);
  const Stepping images = settings({"--data=x", "--lr=0.1"}).value().stepping;
  EXPECT_EQ(images.schedule, "warm-cosine");
  EXPECT_EQ(images.optimizer.lr, 0.1);
  EXPECT_EQ(images.optimizer.others.at("momentum"), 0.9);
  EXPECT_GT(images.RatesOver(100)(1, 9), images.RatesOver(100)(1, 0));
  EXPECT_LT(images.RatesOver(100)(1, 90), images.RatesOver(100)(1, 50));
  const Stepping adam =
      settings({"--data=x", "--optimizer=adam,beta2=0.9", "--weight_decay=0.5",
                "--lr_schedule=one-cycle"})
          .value()
          .stepping;
  const auto rule = std::get<ops::AdamRule>(ops::StepRule(adam.optimizer));
  EXPECT_EQ(rule.lr, optim::AdamOptions().lr);
  EXPECT_EQ(rule.beta2, 0.9);
  EXPECT_EQ(rule.weight_decay, 0.5);
  EXPECT_EQ(adam.schedule, "one-cycle");
  for (const auto& [wrong, why] : std::map<std::string, std::string>{
           {"--optimizer=sdg", "there are sgd, adam"},
           {"--optimizer=adam,beta3=1", "it has lr, beta1"},
           {"--optimizer=adam,beta2=2", "not in [0, 1)"},
           {"--lr_schedule=steep", "there are constant, cosine"},
           {"--lr_schedule=cosine", "is for --data"},
           {"--lr=-1", "negative"}}) {
    const absl::Status status = settings({wrong}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
}

TEST(SettingsFromFlags, LeavesOpenWhatIsToBeChosen) {
  const absl::FlagSaver saver;
  const auto settings = [](const std::vector<std::string>& flags) {
    const absl::FlagSaver one;
    EXPECT_TRUE(tools::ReadFlags(flags).ok());
    return SettingsFromFlags();
  };
  const Settings open = settings({"--stages=auto"}).value();
  EXPECT_TRUE(open.choose_stages);
  EXPECT_TRUE(settings({"--batch=40"}).value().names_no_stages);
  EXPECT_FALSE(settings({"--overlap"}).value().names_no_stages);
  EXPECT_TRUE(open.cuts.empty());
  EXPECT_TRUE(open.split_sizes.empty());
  EXPECT_EQ(open.schedule.name, "auto");
  const Settings partly = settings({"--stages=auto", "--split_size=10,20",
                                    "--schedule=zb-h1", "--worker_mib=100"})
                              .value();
  EXPECT_THAT(partly.split_sizes, ElementsAre(10, 20));
  EXPECT_EQ(partly.schedule.name, "zb-h1");
  EXPECT_EQ(partly.worker_mib, 100);
  const Settings three = settings({"--stages=3"}).value();
  EXPECT_FALSE(three.choose_stages);
  EXPECT_THAT(three.cuts, ElementsAre("layer1", "layer3"));
  EXPECT_THAT(three.split_sizes, ElementsAre(20));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--stages=auto", "--cuts=layer1"},
        {"--stages=auto", "--schedule_file=x"},
        {"--stages=auto", "--micro_batches=60+60"},
        {"--stages=many"},
        {"--stages=5"},
        {"--trials=-1"},
        {"--worker_mib=-1"}}) {
    EXPECT_EQ(settings(wrong).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong.back();
  }
}

TEST(SettingsFromFlags, TakesMicroBatchesThatAddUpToTheBatch) {
  const absl::FlagSaver saver;
  const auto settings = [](const std::string& sizes) {
    EXPECT_TRUE(
        tools::ReadFlags({"--batch=60", "--micro_batches=" + sizes}).ok());
    return SettingsFromFlags();
  };
  EXPECT_EQ(settings("20+40,60").value().micro_batches,
            (std::vector<std::vector<int64_t>>{{20, 40}, {60}}));
  for (const char* wrong :
       {"60+0", "0+60", "60+x", "20+4a", "20+30", "30+40", "-5+65", "+60"}) {
    const auto refused = settings(wrong);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument)
        << wrong;
  }
}

}  // namespace
}  // namespace baton::examples
