// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/state_stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "models/distributed/state_store.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsOk;
using testing::Within;

constexpr milliseconds kGrace{500};

// What the worker "one" keeps for a trainer that is lost.
class StateStoresTest : public ::testing::Test {
 protected:
  StateStoresTest() {
    worker_.WatchMembers([this](const rpc::MemberEvent& event) {
      if (event.kind == rpc::MemberEvent::Kind::kLost) lost_ = true;
    });
  }
  std::shared_ptr<StateStore> Claim(const std::string& trainer,
                                    uint64_t number) {
    const auto store = stores_->Claim(cluster_[trainer].self(),
                                      {.pipeline = "p",
                                       .epoch = number * kEpochsOfTrainer,
                                       .takes_up = true,
                                       .grace_ms = kGrace.count()});
    EXPECT_THAT(store, IsOk());
    return *store;
  }
  void LoseTrainer() {
    cluster_.Kill("trainer");
    ASSERT_TRUE(Within(seconds(20), [this] { return lost_.load(); }));
  }

  std::atomic<bool> lost_ = false;
  testing::LocalCluster cluster_{{.names = {"one", "trainer", "other"}}};
  rpc::Agent& worker_ = cluster_["one"];
  const std::shared_ptr<StateStores> stores_ = StateStores::Of(worker_);
};

TEST_F(StateStoresTest, KeepsStatesForAWhileAfterTheLossOfTheirTrainer) {
  const std::weak_ptr<StateStore> store = Claim("trainer", 1);
  const auto begin = std::chrono::steady_clock::now();
  LoseTrainer();
  EXPECT_TRUE(Within(seconds(20), [&] { return store.expired(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kGrace);
  EXPECT_EQ(stores_->EpochOf("p"), 0);
}

TEST_F(StateStoresTest, KeepsStatesThatAnotherTrainerClaimsInThatTime) {
  const std::weak_ptr<StateStore> store = Claim("trainer", 1);
  LoseTrainer();
  EXPECT_EQ(Claim("other", 2), store.lock());
  std::this_thread::sleep_for(2 * kGrace);
  EXPECT_FALSE(store.expired());
  EXPECT_EQ(stores_->EpochOf("p"), 2 * kEpochsOfTrainer);
}

}  // namespace
}  // namespace baton::dist
