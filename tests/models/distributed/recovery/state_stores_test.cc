// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/state_stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "models/distributed/pipeline.h"
#include "models/distributed/state_store.h"
#include "rpc/rref.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::IsOk;
using testing::Within;

constexpr milliseconds kGrace{2000};

testing::ClusterOptions ThreeWorkers() {
  testing::ClusterOptions options;
  options.names = {"one", "trainer", "other"};
  options.fill = [](rpc::Registry& registry) { RegisterPipeline(registry); };
  return options;
}

StateClaim ClaimBy(uint64_t trainer) {
  return {.pipeline = "p",
          .epoch = trainer * kEpochsOfTrainer,
          .takes_up = true,
          .grace_ms = kGrace.count()};
}

// What the worker "one" keeps for a trainer that is lost.
class StateStoresTest : public ::testing::Test {
 protected:
  StateStoresTest() {
    cluster_["one"].WatchMembers([this](const rpc::MemberEvent& event) {
      if (event.kind == rpc::MemberEvent::Kind::kLost) lost_ = true;
    });
    EXPECT_THAT(
        rpc::Create<StateStore>(cluster_["trainer"], "one", ClaimBy(1)).Await(),
        IsOk());
  }
  void LoseTrainer() {
    cluster_.Kill("trainer");
    ASSERT_TRUE(Within(seconds(20), [this] { return lost_.load(); }));
  }

  std::atomic<bool> lost_ = false;
  testing::LocalCluster cluster_{ThreeWorkers()};
  const std::shared_ptr<StateStores> stores_ = StateStores::Of(cluster_["one"]);
};

TEST_F(StateStoresTest, KeepsStatesForAWhileAfterTheLossOfTheirTrainer) {
  EXPECT_EQ(stores_->EpochOf("p"), kEpochsOfTrainer);
  const auto begin = std::chrono::steady_clock::now();
  LoseTrainer();
  EXPECT_TRUE(Within(seconds(20), [&] { return stores_->EpochOf("p") == 0; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kGrace);
}

TEST_F(StateStoresTest, KeepsStatesThatAnotherTrainerClaimsInThatTime) {
  const auto store = stores_->Claim(cluster_["trainer"].self(), ClaimBy(1));
  ASSERT_THAT(store, IsOk());
  ASSERT_THAT((*store)->Put(kEpochsOfTrainer, {0, 4}, {}), IsOk());
  LoseTrainer();
  const auto others =
      rpc::Create<StateStore>(cluster_["other"], "one", ClaimBy(2)).Await();
  ASSERT_THAT(others, IsOk());
  std::this_thread::sleep_for(3 * kGrace / 2);
  EXPECT_EQ(stores_->EpochOf("p"), 2 * kEpochsOfTrainer);
  const auto kept =
      others->Async<&StateStore::Fence>(2 * kEpochsOfTrainer).Await();
  ASSERT_THAT(kept, IsOk());
  EXPECT_THAT(*kept, ElementsAre(KeptState{0, 4}));
}

}  // namespace
}  // namespace baton::dist
