// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "rpc/introspection.h"
#include "tests/models/distributed/process_devices.h"
#include "tests/models/distributed/process_stages.h"
#include "tests/support/kills.h"
#include "tests/support/process_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/within.h"

// Pipelines whose workers are processes, on TestDevice: on GPUs windows are
// between processes alone, whose steps are recorded, so that these models draw
// no random numbers there.
namespace baton::dist {
namespace {

using testing::IsOk;
using testing::NoisyStage;
using Clock = std::chrono::steady_clock;

constexpr int64_t kProcessWidth = 6;

const std::vector<std::string> kWorkers = {"front", "back"};

// How many of each kind, as in "socket" or the name of a file.
using OpenFiles = std::map<std::string, int>;

// Those of which there are more than before, and how many more.
std::string Grown(const OpenFiles& before, const OpenFiles& now) {
  std::string grown;
  for (const auto& [kind, count] : now) {
    const auto found = before.find(kind);
    const int earlier = found == before.end() ? 0 : found->second;
    if (count > earlier)
      absl::StrAppend(&grown, " ", kind, " +", count - earlier);
  }
  return grown;
}

// This process, which trains, and two workers.
class Processes {
 public:
  Processes() {
    for (const std::string& name : kWorkers) processes_.Start(name, 3);
    auto agent = JoinProcesses("trainer", processes_.address(), 3);
    EXPECT_THAT(agent, IsOk());
    agent_ = *std::move(agent);
  }
  ~Processes() { agent_->Shutdown({.mode = kNow}).IgnoreError(); }
  rpc::Agent& agent() { return *agent_; }
  void Kill(const std::string& worker) { processes_.Kill(worker, false); }
  void StartAgain(const std::string& worker) {
    EXPECT_TRUE(processes_.StartAgain(worker, *agent_)) << worker;
  }
  rpc::DebugInfo Describe(const std::string& worker) {
    const auto info =
        agent_->Async<&rpc::Introspection::Describe>(worker).Await();
    EXPECT_THAT(info, IsOk());
    return info.ok() ? *info : rpc::DebugInfo();
  }
  // Whether the worker runs nothing of a pipeline.
  bool IsFree(const std::string& worker) {
    const rpc::DebugInfo info = Describe(worker);
    return absl::c_none_of(info.incoming, [](const rpc::CallInfo& call) {
      return absl::StrContains(call.method, "StageGroup");
    });
  }
  // Whether the worker owns no object and has no context.
  bool IsEmpty(const std::string& worker) {
    const rpc::DebugInfo info = Describe(worker);
    return info.objects.empty() &&
           absl::c_none_of(info.views, [](const rpc::View& view) {
             return view.name == "contexts" && !view.rows.empty();
           });
  }
  // What the worker's process has open, by kind: sockets, and memory that it
  // shares. A GPU's driver opens files, pipes and eventfds of its own when it
  // likes, which are not counted.
  OpenFiles OpenFilesOf(const std::string& worker) {
    OpenFiles files;
    for (const auto& open : std::filesystem::directory_iterator(
             absl::StrCat("/proc/", processes_[worker].pid(), "/fd"))) {
      std::error_code closed;
      std::string file = std::filesystem::read_symlink(open.path(), closed);
      if (closed || absl::StrContains(file, "nvidia")) continue;
      if (file == "anon_inode:[eventfd]" && test::TestDevice().is_cuda())
        continue;
      file.resize(std::min(file.size(), file.find(":[")));
      if (file == "pipe") continue;
      ++files[file];
    }
    return files;
  }

 private:
  static constexpr auto kNow = rpc::ShutdownOptions::Mode::kNow;
  testing::ProcessCluster processes_{StageWorker};
  std::unique_ptr<rpc::Agent> agent_;
};

// A pipeline over two workers, of stages with a batch norm and a dropout each:
// one at each worker, or two if the schedule needs them.
class PipelineOfTwo {
 public:
  PipelineOfTwo(Processes& cluster, const std::string& schedule,
                int64_t split_size, Windows windows,
                int64_t width = kProcessWidth)
      : PipelineOfTwo(cluster,
                      {.split_size = split_size,
                       .schedule = {.name = schedule},
                       .windows = windows},
                      width) {}
  PipelineOfTwo(Processes& cluster, PipelineOptions options, int64_t width)
      : width_(width) {
    const std::string& schedule = options.schedule.name;
    const bool twice = schedule == "interleaved-1f1b" || schedule == "zb-v";
    std::vector<ParameterSource> sources;
    const auto placed = PlaceStages(schedule, twice ? 4 : 2, 2);
    EXPECT_THAT(placed, IsOk());
    for (const int worker : *placed) {
      modules_.push_back(
          *Module<NoisyStage>::Create(cluster.agent(),
                                      kWorkers[static_cast<size_t>(worker)],
                                      width_, Drop(), uint64_t{7})
               .Await());
      sources.push_back(modules_.back().ref());
    }
    options.step_timeout = std::chrono::seconds(60);
    auto made = Pipeline::Make(cluster.agent(), options,
                               {modules_.begin(), modules_.end()});
    EXPECT_THAT(made, IsOk());
    pipeline_ = *std::move(made);
    sgd_ = std::make_unique<Optimizer<optim::Sgd>>(
        cluster.agent(), optim::SgdOptions{.lr = 0.1, .momentum = 0.9},
        sources);
  }
  Future<Pipeline::StepResult> Step(int64_t rows) {
    Generator generator(11);
    const Tensor x = RandNormal({rows, width_}, generator);
    return pipeline_->StepAsync(*sgd_, x,
                                RandInt(0, width_, {rows}, generator));
  }
  std::string Path() {
    const auto links = pipeline_->Links();
    EXPECT_THAT(links, IsOk());
    return links->front().path + links->front().why_no_window;
  }
  std::string WhyNotRecorded() const { return pipeline_->WhyNotRecorded(); }
  // Of what a worker's module has; undefined values for a worker that is lost.
  nn::StateMap StateAt(int stage) {
    auto state = modules_[static_cast<size_t>(stage)].StateDict().Await();
    EXPECT_THAT(state, IsOk());
    return state.ok() ? *std::move(state) : nn::StateMap();
  }

 private:
  const int64_t width_;
  std::vector<Module<NoisyStage>> modules_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Optimizer<optim::Sgd>> sgd_;
};

// Losses of some steps, of which some are ragged.
std::vector<double> Losses(PipelineOfTwo& stages) {
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
  for (const char* schedule :
       {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "zb-v", "auto"}) {
    SCOPED_TRACE(schedule);
    PipelineOfTwo by_mail(cluster, schedule, 4, Windows::kOff);
    PipelineOfTwo by_window(cluster, schedule, 4, Windows::kRequired);
    EXPECT_EQ(Losses(by_window), Losses(by_mail));
    EXPECT_EQ(by_window.Path(), kWindowPath);
    EXPECT_NE(by_mail.Path(), kWindowPath);
    EXPECT_EQ(by_window.WhyNotRecorded(), "");
    for (int stage : {0, 1}) {
      EXPECT_TRUE(Equal(by_window.StateAt(stage), by_mail.StateAt(stage), ""));
    }
  }
}

TEST(PipelineProcesses, TwoStepsUnderWayGoThroughWindows) {
  Processes cluster;
  PipelineOfTwo in_turn(cluster, "1f1b", 4, Windows::kRequired);
  PipelineOfTwo two(cluster, "1f1b", 4, Windows::kRequired);
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
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(two.Path(), kWindowPath);
}

constexpr std::chrono::seconds kErrsWithin{2};
constexpr int64_t kWide = 256, kManyRows = 64;

// Trains for some steps and returns the shortest time of one: the first ones
// are recorded.
std::chrono::duration<double> Train(PipelineOfTwo& stages) {
  std::chrono::duration<double> shortest = std::chrono::hours(1);
  for (int step = 0; step < 7; ++step) {
    const auto begin = Clock::now();
    EXPECT_THAT(stages.Step(kManyRows).Await(), IsOk());
    shortest = std::min<decltype(shortest)>(shortest, Clock::now() - begin);
  }
  EXPECT_EQ(stages.Path(), kWindowPath);
  return shortest;
}

TEST(KilledPipeline, LeavesTheOtherWorkerSoundAndItsStageWholeStepsAhead) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> moments(0, 2);  // steps
  std::chrono::duration<double> longest{0};
  const int kills = testing::Kills(3);
  int within = 0;
  for (int kill = 0; kill < kills; ++kill) {
    const std::string& victim = kWorkers[kill % 2];
    const std::string& survivor = kWorkers[1 - kill % 2];
    SCOPED_TRACE(absl::StrCat("kill ", kill, ", of ", victim));
    Processes cluster;
    const OpenFiles files = [&] {  // while there is a pipeline
      PipelineOfTwo stages(cluster, "1f1b", 8, Windows::kRequired, kWide);
      Train(stages);
      return cluster.OpenFilesOf(survivor);
    }();
    auto stages = std::make_unique<PipelineOfTwo>(cluster, "1f1b", 8,
                                                  Windows::kRequired, kWide);
    const auto step = Train(*stages);
    const nn::StateMap before = stages->StateAt(1 - kill % 2);
    const auto first = stages->Step(kManyRows);
    const auto second = stages->Step(kManyRows);
    std::this_thread::sleep_for(moments(random) * step);
    cluster.Kill(victim);
    const auto at_kill = Clock::now();
    first.Await().IgnoreError();
    if (second.Await().ok()) {  // it came too late
      EXPECT_FALSE(stages->Step(kManyRows).Await().ok());
    } else {
      ++within;
    }
    EXPECT_TRUE(
        testing::Within(kErrsWithin, [&] { return cluster.IsFree(survivor); }));
    longest = std::max<decltype(longest)>(longest, Clock::now() - at_kill);
    // All of a step is done, or nothing.
    const nn::StateMap after = stages->StateAt(1 - kill % 2);
    EXPECT_EQ(Equal(after, before, "weight"), Equal(after, before, "running"));
    // The survivor trains with a worker that takes the other one's place.
    stages.reset();
    cluster.StartAgain(victim);
    {
      PipelineOfTwo anew(cluster, "1f1b", 8, Windows::kRequired, kWide);
      Train(anew);
      std::string grown;
      EXPECT_TRUE(testing::Within(std::chrono::seconds(10), [&] {
        grown = Grown(files, cluster.OpenFilesOf(survivor));
        return grown.empty();
      })) << grown;
    }
    EXPECT_TRUE(testing::Within(std::chrono::seconds(10),
                                [&] { return cluster.IsEmpty(survivor); }));
  }
  std::printf(
      "longest from a kill to the step's error: %.0f ms; %d of %d "
      "kills came within steps\n",
      1e3 * longest.count(), within, kills);
  EXPECT_LT(longest, kErrsWithin);
  // Some victims are gone only after the steps, as one takes 1 ms on a GPU.
  EXPECT_GT(3 * within, kills);
}

}  // namespace
}  // namespace baton::dist
