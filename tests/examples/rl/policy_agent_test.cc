// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/policy_agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::examples {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::IsOk;

class Batching : public ::testing::Test {
 protected:
  std::shared_ptr<PolicyAgent> Make(const BatchingOptions& options) {
    return PolicyAgent::Make(
        cluster_["alice"], std::make_shared<Policy>(PolicyOptions()), options);
  }
  static std::vector<int64_t> Sizes(PolicyAgent& agent) {
    std::vector<int64_t> sizes;
    for (const AnsweredBatch& batch : agent.TakeAnswered()) {
      EXPECT_LE(batch.begin, batch.end);
      sizes.push_back(batch.requests);
    }
    return sizes;
  }

  testing::LocalCluster cluster_{{.names = {"alice"}, .fill = {}}};
};

TEST_F(Batching, AnswersWhenAllHaveAsked) {
  const auto agent = Make({.batched = true, .max_wait = hours(1)});
  agent->Expect(3);
  const Future<int32_t> first = agent->Act({});
  const Future<int32_t> second = agent->Act({});
  EXPECT_FALSE(first.ready());
  EXPECT_FALSE(second.ready());
  const Future<int32_t> third = agent->Act({});
  EXPECT_TRUE(first.ready() && second.ready() && third.ready());
  EXPECT_EQ(Sizes(*agent), std::vector<int64_t>{3});
}

TEST_F(Batching, AnswersWhenOneWillNotAsk) {
  const auto agent = Make({.batched = true, .max_wait = hours(1)});
  agent->Expect(2);
  const Future<int32_t> action = agent->Act({});
  EXPECT_FALSE(action.ready());
  agent->ExpectOneLess();
  EXPECT_TRUE(action.ready());
}

TEST_F(Batching, AnswersThoseWhoHaveWaitedLongEnough) {
  const auto agent = Make({.batched = true, .max_wait = milliseconds(1)});
  agent->Expect(2);
  // The clock is looked at again for the second, which came later.
  for (int i = 0; i < 2; ++i) EXPECT_THAT(agent->Act({}).Await(), IsOk());
  EXPECT_EQ(Sizes(*agent), (std::vector<int64_t>{1, 1}));
}

TEST_F(Batching, AnswersEachByItselfWherePlain) {
  const auto agent = Make({.batched = false, .max_wait = hours(1)});
  agent->Expect(2);
  EXPECT_TRUE(agent->Act({}).ready());
  EXPECT_EQ(Sizes(*agent), std::vector<int64_t>{1});
}

TEST(Policy, ChoosesByChanceAmongActions) {
  Policy policy({});
  const CartPole::State state = {0.1F, 0.2F, -0.1F, 0.3F};
  std::vector<Observation> observations;
  for (int i = 0; i < 100; ++i)
    observations.push_back(
        {.state = state, .chance = static_cast<float>(i) / 100});
  const std::vector<int32_t> actions = policy.Choose(observations);
  ASSERT_EQ(actions.size(), 100u);
  EXPECT_TRUE(std::is_sorted(actions.begin(), actions.end()));
  EXPECT_EQ(actions.front(), 0);
  EXPECT_EQ(actions.back(), 1);
}

}  // namespace
}  // namespace baton::examples
