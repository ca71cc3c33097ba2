// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <stdexcept>
#include <thread>

#include "rpc/agent.h"
#include "rpc/rref.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

// Every way in which handles travel: whose, by which kind of call, to whom, and
// inside of what.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using ::testing::HasSubstr;
using Handles = std::vector<RRef<int>>;

absl::StatusOr<int> Double(rpc::CallContext& call, RRef<int> value) {
  if (!value.confirmed()) return absl::InternalError("not confirmed");
  ASSIGN_OR_RETURN(int number, value.Fetch(call).Await());
  return 2 * number;
}
// One at each worker, in turn.
Handles MakeAround(rpc::CallContext& call, int count) {
  const int size = static_cast<int>(call.agent().workers().size());
  Handles handles;
  for (int i = 0; i < count; ++i) {
    handles.push_back(call.agent().Remote<&Sum>(rpc::Rank{i % size}, i, 0));
  }
  return handles;
}
absl::StatusOr<int> AddUp(rpc::CallContext& call, RRef<Handles> list) {
  ASSIGN_OR_RETURN(Handles handles, list.Fetch(call).Await());
  int sum = 0;
  for (const RRef<int>& handle : handles) {
    ASSIGN_OR_RETURN(int number, handle.Fetch(call).Await());
    sum += number;
  }
  return sum;
}
std::map<std::string, Handles> Sort(Handles handles) {
  std::map<std::string, Handles> by_owner;
  for (RRef<int>& handle : handles) {
    by_owner[handle.owner().name].push_back(std::move(handle));
  }
  return by_owner;
}
// A handle to a handle to ... the number, one worker further each time.
RRef<int> Innermost(rpc::CallContext& call, int number) {
  return RRef<int>::Make(call.agent(), number);
}
RRef<RRef<int>> Middle(rpc::CallContext& call, int number) {
  return call.agent().Remote<&Innermost>("carol", number);
}
int Refuse(RRef<int>) { throw std::runtime_error("refused"); }

std::atomic<int> held{0};
Promise<void>* release = nullptr;
bool AwaitHeld(int count) {
  const auto end = std::chrono::steady_clock::now() + 5s;
  while (held < count && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  return held == count;
}
// Keeps its argument until the test says otherwise.
Future<int> HoldShared(RRef<int> value) {
  ++held;
  return release->future().Then([value] { return 0; });
}

void FillForSharing(rpc::Registry& registry) {
  FillCounter(registry);
  registry.AddFunction<&Double>()
      .AddFunction<&MakeAround>()
      .AddFunction<&AddUp>()
      .AddFunction<&Sort>()
      .AddFunction<&Innermost>()
      .AddFunction<&Middle>()
      .AddFunction<&Refuse>()
      .AddFunction<&HoldShared>();
}

class SharingTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  SharingTest() {
    release = &release_;
    held = 0;
  }
  ~SharingTest() override {
    release_.Set(absl::OkStatus());
    cluster_.ExpectIdle();
  }
  Promise<void> release_;
  LocalCluster cluster_{{.names = {"alice", "bob", "carol"},
                         .fill = &FillForSharing,
                         .transports = MakerOf(GetParam())}};
  rpc::Agent& alice_ = cluster_["alice"];
};
INSTANTIATE_TEST_SUITE_P(, SharingTest, kTransports, TransportName);

TEST_P(SharingTest, EveryOwnerEveryCalleeEveryKindOfCall) {
  for (const char* owner : {"alice", "bob", "carol"}) {
    for (const char* callee : {"alice", "bob", "carol"}) {
      SCOPED_TRACE(std::string(owner) + " to " + callee);
      RRef<int> value = alice_.Remote<&Sum>(owner, 20, 1);
      // At once, whether its owner knows of the handle yet or not.
      Future<int> doubled = alice_.Async<&Double>(callee, value);
      RRef<int> kept = alice_.Remote<&Double>(callee, value);
      value = {};
      EXPECT_EQ(doubled.Await().value_or(-1), 42);
      EXPECT_EQ(kept.Fetch().Await().value_or(-1), 42);
    }
  }
}

TEST_P(SharingTest, ALocalObjectGoesTheSameWays) {
  for (const char* callee : {"alice", "bob"}) {
    RRef<int> mine = RRef<int>::Make(alice_, 4);
    EXPECT_EQ(alice_.Async<&Double>(callee, mine).Await().value_or(-1), 8);
    RRef<int> kept = alice_.Remote<&Double>(callee, mine);
    mine = {};
    EXPECT_EQ(kept.Fetch().Await().value_or(-1), 8);
  }
}

TEST_P(SharingTest, AListOfHandlesLivesBehindAHandle) {
  for (int i = 0; i < 5; ++i) {
    RRef<Handles> list = alice_.Remote<&MakeAround>("bob", 9);
    for (const char* reader : {"alice", "bob", "carol"}) {
      auto sum = alice_.Async<&AddUp>(reader, {.timeout = 5s}, list).Await();
      ASSERT_THAT(sum, IsOk()) << reader;
      EXPECT_EQ(*sum, 36);
    }
  }
}

TEST_P(SharingTest, HandlesKeepTheirPlacesInContainers) {
  Handles handles;
  for (int i = 0; i < 6; ++i) {
    handles.push_back(alice_.Remote<&Sum>(rpc::Rank{i % 3}, i, 0));
  }
  handles.push_back(handles[0]);
  auto sorted = alice_.Async<&Sort>("bob", handles).Await();
  ASSERT_THAT(sorted, IsOk());
  ASSERT_EQ(sorted->size(), 3u);
  EXPECT_EQ(sorted->at("alice").size(), 3u);
  EXPECT_EQ(sorted->at("alice")[2], handles[0]);
  EXPECT_EQ(sorted->at("carol")[1].Fetch().Await().value_or(-1), 5);
}

TEST_P(SharingTest, HandlesOfHandlesReachTheValue) {
  for (int i = 0; i < 20; ++i) {
    RRef<RRef<RRef<int>>> outer = alice_.Remote<&Middle>("bob", i);
    auto middle = outer.Fetch().Await();
    ASSERT_THAT(middle, IsOk());
    EXPECT_EQ(middle->owner().name, "carol");
    auto inner = middle->Fetch().Await();
    ASSERT_THAT(inner, IsOk());
    outer = {};
    *middle = {};
    EXPECT_EQ(inner->Fetch().Await().value_or(-1), i);
  }
}

TEST_P(SharingTest, ManyRemoteCallsOfRemoteCalls) {
  std::vector<Future<int>> results;
  for (int i = 0; i < 100; ++i) {
    RRef<int> value = alice_.Remote<&Sum>(rpc::Rank{i % 3}, i, 1);
    for (int depth = 0; depth < 3; ++depth) {
      value = alice_.Remote<&Double>(rpc::Rank{(i + depth) % 3}, value);
    }
    results.push_back(value.Fetch());
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(results[i].Await().value_or(-1), 8 * (i + 1));
  }
}

TEST_P(SharingTest, AHandlerThatFailsGivesItsHandlesBack) {
  RRef<int> mine = RRef<int>::Make(alice_, 4);
  RRef<int> theirs = alice_.Remote<&Sum>("carol", 1, 2);
  for (const RRef<int>& value : {mine, theirs}) {
    EXPECT_THAT(alice_.Async<&Refuse>("bob", value).Await(),
                Fails(StatusCode::kInternal, "bob, Refuse: refused"));
    EXPECT_THAT(alice_.Remote<&Refuse>("bob", value).Fetch().Await(),
                Fails(StatusCode::kInternal, "refused"));
  }
}

TEST_P(SharingTest, CountsFollowEveryHolder) {
  RRef<int> mine = RRef<int>::Make(alice_, 4);
  auto holders = [&] { return alice_.GetDebugInfo().objects.at(0).holders; };
  EXPECT_TRUE(holders().empty());
  Future<int> at_bob = alice_.Async<&HoldShared>("bob", mine);
  Future<int> at_carol = alice_.Async<&HoldShared>("carol", mine);
  ASSERT_TRUE(AwaitHeld(2));
  EXPECT_THAT(holders(), ::testing::UnorderedElementsAre("bob", "carol"));
  release_.Set(absl::OkStatus());
  EXPECT_THAT(at_bob.Await(), IsOk());
  EXPECT_THAT(at_carol.Await(), IsOk());
  mine = {};
}

TEST_P(SharingTest, ADeadHolderGivesBackWhatItHeld) {
  RRef<int> mine = RRef<int>::Make(alice_, 4);
  Future<int> at_bob = alice_.Async<&HoldShared>("bob", mine);
  ASSERT_TRUE(AwaitHeld(1));
  mine = {};
  cluster_.Kill("bob");
  EXPECT_THAT(at_bob.Await(5s), Fails(StatusCode::kUnavailable, "bob"));
  EXPECT_TRUE(alice_.AwaitIdle(5s)) << alice_.GetDebugInfo().ToString();
}

TEST_P(SharingTest, AHandleThatWasNeverSharedFreesItsObject) {
  {
    RRef<Counter> mine =
        RRef<Counter>::Make(alice_, std::make_shared<Counter>(1));
    EXPECT_EQ(Counter::alive, 1);
  }
  EXPECT_TRUE(Counter::AllGone());
  EXPECT_TRUE(alice_.GetDebugInfo().objects.empty());
}

TEST_P(SharingTest, TextNamesTypeAndOwner) {
  RRef<int> value = alice_.Remote<&Sum>("bob", 1, 2);
  EXPECT_THAT(value.ToString(), HasSubstr("RRef<int>("));
  EXPECT_THAT(value.ToString(), HasSubstr("owner bob"));
  EXPECT_THAT(value.LocalValue(),
              Fails(StatusCode::kFailedPrecondition, "at worker bob"));
  EXPECT_THAT(value.Ready().Await(), IsOk());
}

}  // namespace
}  // namespace baton::testing
