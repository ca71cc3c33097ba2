// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/reinforce.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "examples/rl/observer.h"
#include "examples/rl/observers.h"
#include "examples/rl/service.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton::examples {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;

testing::ClusterOptions Workers(std::vector<std::string> names) {
  testing::ClusterOptions options;
  options.names = std::move(names);
  options.fill = RegisterObservers;
  return options;
}

std::vector<double> RewardsOf(const Trained& trained) {
  std::vector<double> rewards;
  for (const Round& round : trained.rounds) rewards.push_back(round.reward);
  return rewards;
}

class Inference : public ::testing::TestWithParam<bool> {};

TEST_P(Inference, LearnsToHoldThePoleUp) {
  testing::LocalCluster cluster(Workers({"alice", "bob", "carol", "dave"}));
  ReinforceOptions options;
  options.batching.batched = GetParam();
  options.goal = 150;
  options.rounds = 30;
  int64_t heard = 0;
  const auto trained =
      Reinforce(cluster["alice"], options, [&](const Round&) { ++heard; });
  ASSERT_THAT(trained, IsOk());
  EXPECT_TRUE(trained->solved);
  EXPECT_GT(trained->rounds.back().last_reward, 150);
  EXPECT_LT(trained->rounds.front().reward, 50);
  EXPECT_EQ(heard, static_cast<int64_t>(trained->rounds.size()));
  const Measurement measured = ServiceMeasurement("it", trained->figures);
  EXPECT_EQ(measured.items,
            static_cast<int64_t>(trained->figures.latencies_us.size()));
  EXPECT_THAT(FormatPercentiles({measured}, kServiceFigures),
              HasSubstr("it observer_latency_us"));
  cluster.ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Rl, Inference, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Batched" : "Plain";
                         });

TEST(Reinforcement, ResumesWhereItWasSaved) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(Workers({"alice", "bob"}));
  ReinforceOptions options;
  options.batching.batched = false;
  const auto train = [&](int64_t rounds) {
    options.rounds = rounds;
    return Reinforce(cluster["alice"], options, [](const Round&) {});
  };
  const auto whole = train(9);
  ASSERT_THAT(whole, IsOk());
  options.saving.checkpoints.folder = folder / "saved";
  options.saving.resume = Saving::Resume::kLatest;
  const auto begun = train(4);
  ASSERT_THAT(begun, IsOk());
  EXPECT_EQ(begun->resumed_from, 0);
  const auto rest = train(9);
  ASSERT_THAT(rest, IsOk());
  EXPECT_EQ(rest->resumed_from, 4);
  ASSERT_EQ(rest->rounds.size(), 5u);
  const Round& last = rest->rounds.back();
  const Round& expected = whole->rounds.back();
  EXPECT_EQ(last.number, 9);
  EXPECT_EQ(last.episodes, expected.episodes);
  EXPECT_EQ(last.last_reward, expected.last_reward);
  EXPECT_EQ(last.loss, expected.loss);
  EXPECT_THAT(train(9), testing::Fails(absl::StatusCode::kFailedPrecondition,
                                       "give more --rounds"));
}

TEST(Reinforcement, IsTheSameForAnyNumberOfObservers) {
  const auto rewards = [](std::vector<std::string> names) {
    testing::LocalCluster cluster(Workers(std::move(names)));
    ReinforceOptions options;
    options.batching.batched = false;  // sums of other batches round otherwise
    options.rounds = 3;
    const auto trained =
        Reinforce(cluster["alice"], options, [](const Round&) {});
    return trained.ok() ? RewardsOf(*trained) : std::vector<double>();
  };
  const std::vector<double> by_one = rewards({"alice", "bob"});
  EXPECT_EQ(by_one.size(), 3u);
  EXPECT_EQ(rewards({"alice", "bob", "carol", "dave"}), by_one);
}

TEST(Reinforcement, GoesOnWithoutLostObserversAndWithThoseThatJoin) {
  testing::LocalCluster cluster(Workers({"alice", "bob", "carol", "dave"}));
  ReinforceOptions options;
  options.policy.optimizer.lr = 0;  // short episodes to the end
  options.rounds = 40;
  std::vector<int64_t> observers;
  const auto trained =
      Reinforce(cluster["alice"], options, [&](const Round& round) {
        observers.push_back(round.observers);
        if (round.number == 2) cluster.Kill("dave");
        if (round.number == 4) cluster.Restart("dave");
      });
  ASSERT_THAT(trained, IsOk());
  EXPECT_EQ(observers[1], 3);
  EXPECT_EQ(observers[2], 2);
  EXPECT_EQ(trained->rounds[2].lost, 1);
  EXPECT_EQ(observers.back(), 3);
  cluster.ExpectIdle();
}

TEST(Reinforcement, SaysThatNobodyObserves) {
  testing::LocalCluster cluster(Workers({"alice"}));
  EXPECT_THAT(Reinforce(cluster["alice"], {}, [](const Round&) {}),
              testing::Fails(absl::StatusCode::kUnavailable, "--workers"));
}

// Batches that wait for it go on after a moment, and its call ends.
TEST(Reinforcement, AnObserverThatIsLostWhileItPlaysStallsNobody) {
  testing::LocalCluster cluster(Workers({"alice", "bob", "carol", "dave"}));
  const auto agent = PolicyAgent::Make(
      cluster["alice"], std::make_shared<Policy>(PolicyOptions()),
      {.batched = true, .max_wait = std::chrono::milliseconds(1)});
  constexpr int64_t kRequests = 3000;
  Observers observers(cluster["alice"], agent);
  auto asking = std::async(std::launch::async,
                           [&] { return observers.Ask(1, kRequests); });
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int64_t batches = 0;
  while (batches < 100 && std::chrono::steady_clock::now() < deadline) {
    batches += static_cast<int64_t>(agent->TakeAnswered().size());
    std::this_thread::yield();
  }
  ASSERT_GE(batches, 100);
  cluster.Kill("dave");
  const absl::StatusOr<Played> played = asking.get();
  ASSERT_THAT(played, IsOk());
  EXPECT_EQ(played->latencies_us.size(), 2 * kRequests);
  EXPECT_EQ(observers.lost(), 1);
  EXPECT_EQ(observers.played(), 2);
}

}  // namespace
}  // namespace baton::examples
