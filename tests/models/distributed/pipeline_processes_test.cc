// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/arithmetic.h"
#include "core/precision.h"
#include "core/random.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/models/distributed/process_devices.h"
#include "tests/models/distributed/process_stages.h"
#include "tests/support/child_process.h"
#include "tests/support/kills.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"

// Pipelines whose workers are processes, on TestDevice: on GPUs windows are
// between processes alone, whose steps are recorded, so that these models draw
// no random numbers there.
namespace baton::dist {
namespace {

using testing::IsOk;
using testing::NoisyStage;
using Clock = std::chrono::steady_clock;

constexpr int64_t kProcessWidth = 6;

// Of a loss after a few steps, on GPUs.
constexpr double kSlack = 1e-5;

// This process, which trains, and two workers.
class Processes {
 public:
  Processes() {
    rendezvous_ = *rpc::RendezvousServer::Make("127.0.0.1:0", {});
    for (const char* name : {"front", "back"}) {
      workers_[name] = std::make_unique<ChildProcess>(std::vector<std::string>{
          testing::ProgramPath("stage_worker"), name, rendezvous_->address(),
          NextDevice().ToString()});
    }
    rpc::Registry registry;
    RegisterProcessStages(registry);
    rpc::ClusterOptions options;
    options.name = "trainer";
    options.rendezvous = rendezvous_->address();
    options.world_size = 3;
    options.agent.on_start = Attach;
    auto agent = rpc::JoinCluster(std::move(options), std::move(registry));
    EXPECT_THAT(agent, IsOk());
    agent_ = *std::move(agent);
  }
  ~Processes() { agent_->Shutdown({.mode = kNow}).IgnoreError(); }
  rpc::Agent& agent() { return *agent_; }
  void Kill(const std::string& worker) { workers_.at(worker)->Kill(SIGKILL); }

 private:
  static constexpr auto kNow = rpc::ShutdownOptions::Mode::kNow;
  std::unique_ptr<rpc::RendezvousServer> rendezvous_;
  std::map<std::string, std::unique_ptr<ChildProcess>> workers_;
  std::unique_ptr<rpc::Agent> agent_;
};

// Two stages with a batch norm and a dropout each.
class TwoStages {
 public:
  TwoStages(Processes& cluster, const std::string& schedule, int64_t split_size,
            Windows windows) {
    for (const char* worker : {"front", "back"}) {
      modules_.push_back(*Module<NoisyStage>::Create(cluster.agent(), worker,
                                                     kProcessWidth, Drop(),
                                                     uint64_t{7})
                              .Await());
    }
    PipelineOptions options;
    options.split_size = split_size;
    options.schedule.name = schedule;
    options.windows = windows;
    options.step_timeout = std::chrono::seconds(60);
    auto made =
        Pipeline::Make(cluster.agent(), options, {modules_[0], modules_[1]});
    EXPECT_THAT(made, IsOk());
    pipeline_ = *std::move(made);
    sgd_ = std::make_unique<Optimizer<optim::Sgd>>(
        cluster.agent(), optim::SgdOptions{.lr = 0.1, .momentum = 0.9},
        std::vector<ParameterSource>{modules_[0].ref(), modules_[1].ref()});
  }
  Future<Pipeline::StepResult> Step(int64_t rows) {
    Generator generator(11);
    const Tensor x = RandNormal({rows, kProcessWidth}, generator);
    return pipeline_->StepAsync(*sgd_, x,
                                RandInt(0, kProcessWidth, {rows}, generator));
  }
  std::string Path() {
    const auto links = pipeline_->Links();
    EXPECT_THAT(links, IsOk());
    return links->front().path + links->front().why_no_window;
  }
  // Of what a worker's module has; undefined values for a worker that is lost.
  nn::StateMap StateAt(int stage) {
    auto state = modules_[static_cast<size_t>(stage)].StateDict().Await();
    EXPECT_THAT(state, IsOk());
    return state.ok() ? *std::move(state) : nn::StateMap();
  }

 private:
  std::vector<Module<NoisyStage>> modules_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Optimizer<optim::Sgd>> sgd_;
};

// Losses of some steps, of which some are ragged.
std::vector<double> Losses(TwoStages& stages) {
  std::vector<double> losses;
  for (int64_t rows : {11, 11, 12, 11, 12, 11}) {
    const auto result = stages.Step(rows).Await();
    EXPECT_THAT(result, IsOk());
    losses.push_back(result.ok() ? result->loss : 0);
  }
  return losses;
}

bool Equal(const nn::StateMap& a, const nn::StateMap& b,
           const std::string& part) {
  bool equal = a.size() == b.size(), any = false;
  for (const auto& [name, tensor] : a) {
    if (name.find(part) == std::string::npos) continue;
    any = true;
    equal = equal && ops::BitEqual(tensor, b.at(name));
  }
  EXPECT_TRUE(any) << part;
  return equal;
}

TEST(PipelineProcesses, TrainThroughWindowsAsByMailBitForBit) {
  Processes cluster;
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    SCOPED_TRACE(schedule);
    TwoStages by_mail(cluster, schedule, 4, Windows::kOff);
    TwoStages by_window(cluster, schedule, 4, Windows::kRequired);
    ExpectSame(Losses(by_window), Losses(by_mail), kSlack);
    EXPECT_EQ(by_window.Path(), kWindowPath);
    EXPECT_NE(by_mail.Path(), kWindowPath);
    if (test::TestDevice().is_cuda()) continue;
    for (int stage : {0, 1}) {
      EXPECT_TRUE(Equal(by_window.StateAt(stage), by_mail.StateAt(stage), ""));
    }
  }
}

TEST(PipelineProcesses, TwoStepsUnderWayGoThroughWindows) {
  Processes cluster;
  TwoStages in_turn(cluster, "1f1b", 4, Windows::kRequired);
  TwoStages two(cluster, "1f1b", 4, Windows::kRequired);
  constexpr int kSteps = 9;
  std::vector<double> wanted, got;
  for (int step = 0; step < kSteps; ++step)
    wanted.push_back(in_turn.Step(12).Await()->loss);
  Future<Pipeline::StepResult> next = two.Step(12);
  for (int step = 0; step < kSteps; ++step) {
    const Future<Pipeline::StepResult> present = next;
    if (step + 1 < kSteps) next = two.Step(12);
    const auto result = present.Await();
    ASSERT_THAT(result, IsOk());
    got.push_back(result->loss);
  }
  ExpectSame(got, wanted, kSlack);
  EXPECT_EQ(two.Path(), kWindowPath);
}

TEST(KilledPipeline, LeavesTheOtherWorkerSoundAndItsStageWholeStepsAhead) {
  std::mt19937 random(5);
  std::chrono::duration<double> longest{0};
  for (int kill = 0; kill < testing::Kills(3); ++kill) {
    const int victim = kill % 2;
    SCOPED_TRACE(absl::StrCat("kill ", kill));
    Processes cluster;
    TwoStages stages(cluster, "1f1b", 2, Windows::kRequired);
    for (int step = 0; step < 3; ++step)
      ASSERT_THAT(stages.Step(64).Await(), IsOk());
    ASSERT_EQ(stages.Path(), kWindowPath);
    const nn::StateMap before = stages.StateAt(1 - victim);
    auto step = stages.Step(64);
    step.Await(std::chrono::milliseconds(random() % 40)).IgnoreError();
    cluster.Kill(victim == 0 ? "front" : "back");
    const auto at_kill = Clock::now();
    // It may have ended before.
    if (step.Await().ok()) step = stages.Step(64);
    EXPECT_FALSE(step.Await().ok());
    longest = std::max<decltype(longest)>(longest, Clock::now() - at_kill);
    // All of the step is done, or nothing.
    const nn::StateMap after = stages.StateAt(1 - victim);
    EXPECT_EQ(Equal(after, before, "weight"), Equal(after, before, "running"));
    const auto anew = Module<NoisyStage>::Create(
                          cluster.agent(), victim == 0 ? "back" : "front",
                          kProcessWidth, Drop(), uint64_t{8})
                          .Await();
    EXPECT_THAT(anew, IsOk());
  }
  std::printf("longest from a kill to the step's error: %.0f ms\n",
              1e3 * longest.count());
  EXPECT_LT(longest.count(), 20);  // the step itself may take 60 s
}

}  // namespace
}  // namespace baton::dist
