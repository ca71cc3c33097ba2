// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/precision.h"
#include "rpc/rendezvous.h"
#include "tests/models/distributed/process_devices.h"
#include "tests/models/distributed/recovery/recovered_stages.h"
#include "tests/models/distributed/recovery/undisturbed_losses.h"
#include "tests/support/kills.h"
#include "tests/support/process_cluster.h"
#include "tests/support/test_files.h"
#include "tests/support/within.h"

// Trainers of a pipeline that are killed or stopped, and followed by others.
namespace baton::dist {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const std::vector<std::string> kStagesLeft = {"one", "two", "three"};
constexpr int kMostSteps = 100'000;

// Workers, and trainers that follow each other.
class Trainings {
 public:
  explicit Trainings(const std::string& journal) : journal_(journal) {
    for (const std::string& name : kStagesLeft) processes_.Start(name, 4);
  }
  // `world_size` 0: in a cluster that has met. Gives the step after which it
  // begins; -1 where it does not.
  int Start(const std::string& name, int world_size, int steps = kMostSteps) {
    steps_ = steps;
    processes_.Start(name, world_size);
    const std::string line = Next(name);
    int after = -1;
    if (!absl::SimpleAtoi(std::string(line, line.rfind(' ') + 1), &after))
      ADD_FAILURE() << line;
    return after;
  }
  // Of the trainer's output, within a minute.
  std::string Next(const std::string& name) {
    return processes_[name]
        .ReadLine(Clock::now() + std::chrono::minutes(1))
        .value_or("nothing");
  }
  // Takes note of a step's loss, which is the same whoever tells it.
  bool Step(const std::string& name) {
    const std::string line = Next(name);
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    int step = 0;
    double loss = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[0], &step)) {
      last_ = line;
      return false;
    }
    loss = std::strtod(words[1].c_str(), nullptr);
    const auto [at, is_new] = losses_.emplace(step, loss);
    EXPECT_EQ(at->second, loss) << step;
    return true;
  }
  testing::ProcessCluster& processes() { return processes_; }
  // In place of a step.
  const std::string& last() const { return last_; }
  const std::map<int, double>& losses() const { return losses_; }

 private:
  std::vector<std::string> Command(const std::string& name,
                                   const std::string& rendezvous,
                                   int world_size) const {
    if (name.rfind("trainer", 0) != 0)
      return StageWorker(name, rendezvous, world_size);
    return {testing::ProgramPath("stage_trainer"),
            name,
            rendezvous,
            absl::StrCat(world_size),
            journal_,
            absl::StrCat(steps_)};
  }

  const std::string journal_;
  int steps_ = kMostSteps;
  testing::ProcessCluster processes_{
      [this](const std::string& name, const std::string& rendezvous,
             int world_size) { return Command(name, rendezvous, world_size); }};
  std::string last_;
  std::map<int, double> losses_;
};

// The losses of steps are those that the same stages have undisturbed.
void ExpectUndisturbed(const std::map<int, double>& told) {
  const std::vector<double> all = UndisturbedLosses(
      static_cast<size_t>(told.rbegin()->first) + 1, kStagesLeft);
  std::vector<double> losses, wanted;
  for (const auto& [step, loss] : told) {
    losses.push_back(loss);
    wanted.push_back(all[static_cast<size_t>(step)]);
  }
  ExpectSame(losses, wanted, 1e-3);
}

class LostTrainer : public ::testing::Test {
 protected:
  LostTrainer() { SetDeterministic(true); }
  ~LostTrainer() override { SetDeterministic(false); }

  const testing::TempFolder folder_;
  Trainings trainings_{folder_.path() + "/journal"};
};

TEST_F(LostTrainer, AnotherGoesOnWhereItWas) {
  std::mt19937 random(5);
  std::string name = "trainer";
  ASSERT_EQ(trainings_.Start(name, 4), 0);
  for (int kill = 0; kill < testing::Kills(4); ++kill) {
    SCOPED_TRACE(absl::StrCat("kill ", kill));
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(trainings_.Step(name));
    const auto end =
        Clock::now() + std::chrono::microseconds(random() % 20'000);
    while (Clock::now() < end) {
    }
    const bool tell = kill % 2 == 0;
    trainings_.processes().Kill(name, tell);
    while (trainings_.Step(name)) {  // what it still said
    }
    const int last = trainings_.losses().rbegin()->first;
    if (!tell) name = absl::StrCat("trainer", kill);  // its name is taken yet
    const int after = trainings_.Start(name, 0);
    // States are kept as soon as the last one is safe, on an idle machine every
    // other step. Of its last step the trainer had no time to tell.
    ASSERT_GE(after + RecoveredStages::kMostRedone, last);
    ASSERT_LE(after, last + 2);
  }
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(trainings_.Step(name));
  ExpectUndisturbed(trainings_.losses());
}

TEST_F(LostTrainer, OneThatWakesUpLateIsRefused) {
  ASSERT_EQ(trainings_.Start("trainer", 4), 0);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(trainings_.Step("trainer"));
  trainings_.processes()["trainer"].Kill(SIGSTOP);
  ASSERT_GE(trainings_.Start("trainer2", 0), 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(trainings_.Step("trainer2"));
  trainings_.processes()["trainer"].Kill(SIGCONT);
  while (trainings_.Step("trainer")) {  // said before it was stopped
  }
  EXPECT_THAT(trainings_.last(), HasSubstr("PERMISSION_DENIED"));
  EXPECT_THAT(trainings_.last(), HasSubstr("worker trainer2 (incarnation"));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(trainings_.Step("trainer2"));
  ExpectUndisturbed(trainings_.losses());
}

TEST_F(LostTrainer, OneThatWasGivenUpGoesOnIfNobodyFollowsIt) {
  ASSERT_EQ(trainings_.Start("trainer", 4), 0);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(trainings_.Step("trainer"));
  trainings_.processes()["trainer"].Kill(SIGSTOP);
  ASSERT_TRUE(testing::Within(std::chrono::seconds(30), [&] {
    const auto there = rpc::ListWorkers(trainings_.processes().address(),
                                        "baton", std::chrono::seconds(10));
    return there.ok() && there->size() == kStagesLeft.size();
  }));
  trainings_.processes()["trainer"].Kill(SIGCONT);
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(trainings_.Step("trainer")) << trainings_.last();
  ExpectUndisturbed(trainings_.losses());
}

TEST_F(LostTrainer, ATrainingThatIsOverIsNotTakenUp) {
  ASSERT_EQ(trainings_.Start("trainer", 4, 5), 0);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(trainings_.Step("trainer"));
  EXPECT_EQ(trainings_.Next("trainer"), "over");
  trainings_.processes()["trainer"].Wait();
  EXPECT_EQ(trainings_.Start("trainer", 0), 0);
}

}  // namespace
}  // namespace baton::dist
