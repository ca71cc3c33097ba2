// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/precision.h"
#include "models/distributed/recovery.h"
#include "rpc/spares.h"
#include "tests/models/distributed/process_devices.h"
#include "tests/models/distributed/process_stages.h"
#include "tests/models/distributed/recovery/recovered_stages.h"
#include "tests/models/distributed/recovery/undisturbed_losses.h"
#include "tests/support/kills.h"
#include "tests/support/local_cluster.h"
#include "tests/support/process_cluster.h"

// Pipelines over processes that are killed, and recovered.
namespace baton::dist {
namespace {

using testing::IsOk;
using Clock = std::chrono::steady_clock;

const std::vector<std::string> kWorkers = {"one", "two", "three"};
constexpr int kStepsBefore = 3;  // a kill, and after its recovery

// Who takes the place of a worker that was killed: a spare that is there, or a
// process that is started then.
enum class Successor { kSpare, kRespawned };

// This process, which trains, three workers and, as the case may be, a spare.
class KillableWorkers {
 public:
  explicit KillableWorkers(Successor successor) {
    for (const std::string& name : kWorkers) processes_.Start(name, 4);
    auto agent = JoinProcesses("trainer", processes_.address(), 4);
    EXPECT_THAT(agent, IsOk());
    agent_ = *std::move(agent);
    if (successor == Successor::kSpare) StartAgain(rpc::SpareName(1));
  }
  ~KillableWorkers() { agent_->Shutdown({.mode = kNow}).IgnoreError(); }
  rpc::Agent& agent() { return *agent_; }
  void Kill(const std::string& name, bool tell) { processes_.Kill(name, tell); }
  // One more, which is there on return.
  void StartAgain(const std::string& name) {
    EXPECT_TRUE(processes_.StartAgain(name, *agent_)) << name;
  }

 private:
  static constexpr auto kNow = rpc::ShutdownOptions::Mode::kNow;
  testing::ProcessCluster processes_{StageWorker};
  std::unique_ptr<rpc::Agent> agent_;
};

void PrintMillis(const char* what, std::vector<double> seconds) {
  if (seconds.empty()) return;
  std::sort(seconds.begin(), seconds.end());
  std::printf("%s: median %.0f ms, most %.0f ms of %zu\n", what,
              1e3 * seconds[seconds.size() / 2], 1e3 * seconds.back(),
              seconds.size());
}

// Times of many recoveries.
struct Times {
  std::vector<double> told, untold, detect, decide, make, load, redo;

  void Add(const Recovery& recovery) {
    detect.push_back(recovery.detect);
    decide.push_back(recovery.decide);
    make.push_back(recovery.make);
    load.push_back(recovery.load);
    redo.push_back(recovery.redo);
  }
  void Print() const {
    PrintMillis("from a kill to the next committed step, told by a launcher",
                told);
    PrintMillis("the same, by broken connections and the lease", untold);
    PrintMillis("  detect", detect);
    PrintMillis("  decide", decide);
    PrintMillis("  make", make);
    PrintMillis("  load", load);
    PrintMillis("  redo", redo);
  }
};

void KillAndCompare(Successor successor) {
  SetDeterministic(true);
  std::mt19937 random(3);
  KillableWorkers workers(successor);
  RecoveredStages stages(workers.agent(), kWorkers);
  Times times;
  const auto pipeline = stages.Pipeline(
      {.on_recovery = [&](const Recovery& each) { times.Add(each); }});
  ASSERT_NE(pipeline, nullptr);
  std::vector<double> losses;
  const auto step = [&] { return RecoveredStages::AddLoss(*pipeline, losses); };
  for (int kill = 0; kill < testing::Kills(4); ++kill) {
    SCOPED_TRACE(absl::StrCat("kill ", kill));
    for (int i = 0; i < kStepsBefore; ++i) ASSERT_TRUE(step());
    const std::string victim =
        stages.modules()[random() % kWorkers.size()].owner().name;
    const auto delay = std::chrono::microseconds(random() % 20'000);
    const bool respawns = successor == Successor::kRespawned;
    const bool tell = respawns || kill % 2 == 0;  // as a launcher does
    Clock::time_point killed_at;
    std::thread killer([&, end = Clock::now() + delay] {
      while (Clock::now() < end) std::this_thread::yield();
      killed_at = Clock::now();
      workers.Kill(victim, tell);
      if (respawns) workers.StartAgain(victim);
    });
    const int64_t before = pipeline->recoveries();
    while (pipeline->recoveries() == before && step()) {
    }
    const auto committed_at = Clock::now();
    killer.join();
    ASSERT_EQ(pipeline->recoveries(), before + 1);
    const std::chrono::duration<double> took = committed_at - killed_at;
    (tell ? times.told : times.untold).push_back(took.count());
    if (!respawns) workers.StartAgain(victim);
  }
  for (int i = 0; i < kStepsBefore; ++i) ASSERT_TRUE(step());
  times.Print();
  ExpectSame(losses, UndisturbedLosses(losses.size(), kWorkers), 1e-3);
  SetDeterministic(false);
}

TEST(KilledPipeline, LearnsAsIfNothingHadHappened) {
  KillAndCompare(Successor::kSpare);
}

TEST(KilledPipeline, LearnsAsIfNothingHadHappenedByRespawnedWorkers) {
  KillAndCompare(Successor::kRespawned);
}

}  // namespace
}  // namespace baton::dist
