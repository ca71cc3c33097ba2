// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>

#include "rpc/agent.h"
#include "rpc/frames.h"
#include "tests/rpc/held_call.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::FaultKind;
using rpc::internal::FrameKind;

std::atomic<int> runs{0};

int CountRun() { return ++runs; }
int HoldConfirmed(RRef<Counter> counter) { return counter.confirmed() ? 1 : 0; }

void FillForFaults(rpc::Registry& registry) {
  FillHeldCall(registry);
  registry.AddFunction<&CountRun>();
  registry.AddFunction<&HoldConfirmed>();
}

auto IsFrame(FrameKind kind) {
  return [kind](const rpc::WorkerInfo&, const std::string&,
                const rpc::Message& message) {
    return !message.header.empty() &&
           message.header[0] == static_cast<char>(kind);
  };
}
auto IsFrameTo(FrameKind kind, std::string name) {
  return [kind, name](const rpc::WorkerInfo& from, const std::string& to,
                      const rpc::Message& message) {
    return to == name && IsFrame(kind)(from, to, message);
  };
}

// Whether `agent` comes to see its peer `name` in `state`.
bool AwaitState(rpc::Agent& agent, const std::string& name,
                const std::string& state) {
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const rpc::PeerInfo& peer : agent.GetDebugInfo().peers) {
      if (peer.worker.name == name && peer.state == state) return true;
    }
    std::this_thread::yield();
  }
  return false;
}

// So that nobody is given up who merely had to wait for the machine.
class FaultTest : public ::testing::Test {
 protected:
  explicit FaultTest(std::chrono::milliseconds lease = 10s) : lease_(lease) {
    runs = 0;
  }
  ~FaultTest() override {
    plan_->Clear();
    held_.Answer(0);
    cluster_.ExpectIdle();
    EXPECT_TRUE(Counter::AllGone());
  }
  const std::chrono::milliseconds lease_;
  HeldCall held_;
  std::shared_ptr<rpc::FaultPlan> plan_ = std::make_shared<rpc::FaultPlan>();
  LocalCluster cluster_{{.names = {"alice", "bob", "carol"},
                         .fill = &FillForFaults,
                         .lease = lease_,
                         .resend_after = 20ms,
                         .faults = plan_}};
  rpc::Agent& alice_ = cluster_["alice"];
};

class GivenUpTest : public FaultTest {
 protected:
  GivenUpTest() : FaultTest(500ms) {}
  void PartAliceAndCarol() {
    ASSERT_THAT(alice_.Async<&CountRun>("carol").Await(), IsOk());
    plan_->Add({.kind = FaultKind::kSever,
                .matches = [](const auto& from, const auto& to, const auto&) {
                  return from.name != "bob" && to != "bob";
                }});
    EXPECT_FALSE(carol_.Async<&CountRun>("alice").Await().ok());
    ASSERT_TRUE(AwaitState(carol_, "alice", "gone"));
    ASSERT_TRUE(AwaitState(alice_, "carol", "gone"));
  }
  rpc::Agent& bob_ = cluster_["bob"];
  rpc::Agent& carol_ = cluster_["carol"];
};

// Every way of sharing, once.
void Share(LocalCluster& cluster) {
  rpc::Agent& alice = cluster["alice"];
  auto counter = rpc::Create<Counter>(alice, "bob", 1).Await();
  ASSERT_THAT(counter, IsOk());
  RRef<Counter> mine = RRef<Counter>::Make(alice, std::make_shared<Counter>(1));
  std::vector<Future<int>> calls;
  for (const char* where : {"alice", "bob", "carol"}) {
    calls.push_back(alice.Async<&Counter::AddTo>(where, *counter, 1));
    calls.push_back(alice.Async<&Counter::AddTo>(where, mine, 1));
  }
  auto passed = counter->Async<&Counter::Pass>(mine).Await();
  ASSERT_THAT(passed, IsOk());
  for (Future<int>& call : calls) ASSERT_THAT(call.Await(), IsOk());
  EXPECT_EQ(*counter->Async<&Counter::Get>().Await(), 4);
  EXPECT_EQ((*mine.LocalValue())->Get(), 4);
}

TEST(OwnershipSchedules, LostDoubledAndReorderedControlMessagesHurtNothing) {
  for (int seed = 1; seed <= 25; ++seed) {
    auto plan = std::make_shared<rpc::FaultPlan>(seed);
    LocalCluster cluster({.names = {"alice", "bob", "carol"},
                          .fill = &FillForFaults,
                          .lease = 10s,
                          .resend_after = 10ms,
                          .faults = plan});
    for (FaultKind kind : {FaultKind::kDrop, FaultKind::kDuplicate,
                           FaultKind::kReorder, FaultKind::kDelay}) {
      plan->Add({.kind = kind,
                 .matches = IsFrame(FrameKind::kControl),
                 .probability = 0.15,
                 .delay = 5ms});
    }
    Share(cluster);
    cluster.ExpectIdle();
    EXPECT_TRUE(Counter::AllGone()) << "seed " << seed;
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_F(FaultTest, ReorderedAndDoubledMessagesOfAllKindsHurtNothing) {
  plan_->Add(
      {.kind = FaultKind::kDuplicate, .matches = nullptr, .probability = 0.3});
  plan_->Add({.kind = FaultKind::kReorder,
              .matches = nullptr,
              .probability = 0.3,
              .delay = 3ms});
  for (int i = 0; i < 10; ++i) Share(cluster_);
}

TEST_F(FaultTest, ADoubledRequestRunsOnce) {
  plan_->Add(
      {.kind = FaultKind::kDuplicate, .matches = IsFrame(FrameKind::kRequest)});
  for (int i = 1; i <= 50; ++i) {
    EXPECT_EQ(*alice_.Async<&CountRun>("bob").Await(), i);
  }
  EXPECT_THAT(rpc::Create<Counter>(alice_, "bob", 1).Await(), IsOk());
  EXPECT_EQ(runs, 50);
}

TEST_F(FaultTest, ALostRequestEndsByItsDeadline) {
  plan_->Add(
      {.kind = FaultKind::kDrop, .matches = IsFrame(FrameKind::kRequest)});
  EXPECT_THAT(alice_.Async<&CountRun>("bob", {.timeout = 40ms}).Await(),
              Fails(StatusCode::kDeadlineExceeded, "bob, CountRun"));
  EXPECT_EQ(runs, 0);
}

TEST_F(FaultTest, ALostCreationFailsItsHandleForGood) {
  plan_->Add({.kind = FaultKind::kDrop,
              .matches = IsFrame(FrameKind::kRequest),
              .at_most = 1});
  alice_.set_default_timeout(50ms);
  RRef<int> lost = alice_.Remote<&CountRun>("bob");
  EXPECT_THAT(lost.Fetch().Await(), Fails(StatusCode::kDeadlineExceeded, ""));
  EXPECT_FALSE(lost.confirmed());
  EXPECT_THAT(lost.Fetch(rpc::CallOptions{.timeout = 5s}).Await(),
              Fails(StatusCode::kDeadlineExceeded, ""));
}

TEST_F(FaultTest, ACreationThatComesAfterItsCallerGaveUpLeavesNothing) {
  plan_->Add({.kind = FaultKind::kDelay,
              .matches = IsFrame(FrameKind::kRequest),
              .at_most = 1,
              .delay = 1s});
  EXPECT_FALSE(
      rpc::Create<Counter>(alice_, "bob", rpc::CallOptions{.timeout = 40ms}, 1)
          .Await()
          .ok());
  plan_->Clear();
  EXPECT_THAT(rpc::Create<Counter>(alice_, "bob", 1).Await(), IsOk());
}

TEST_F(FaultTest, AGrantThatNeverArrivedIsTakenBack) {
  RRef<Counter> mine =
      RRef<Counter>::Make(alice_, std::make_shared<Counter>(1));
  RRef<Counter> theirs = *rpc::Create<Counter>(alice_, "carol", 1).Await();
  plan_->Add({.kind = FaultKind::kDrop,
              .matches = IsFrameTo(FrameKind::kRequest, "bob")});
  for (const RRef<Counter>& counter : {mine, theirs}) {
    EXPECT_FALSE(alice_.Async<&HoldConfirmed>("bob", {.timeout = 30ms}, counter)
                     .Await()
                     .ok());
  }
}

TEST_F(FaultTest, ABrokenConnectionFailsItsCallsAndIsMadeAgain) {
  Future<int> call = alice_.Async<&Wait>("bob");
  ASSERT_TRUE(held_.AwaitEntered());
  plan_->Add({.kind = FaultKind::kSever,
              .matches = IsFrameTo(FrameKind::kRequest, "bob"),
              .at_most = 1});
  Future<int> severed = alice_.Async<&CountRun>("bob");
  EXPECT_THAT(call.Await(), Fails(StatusCode::kUnavailable, "bob, Wait"));
  EXPECT_THAT(severed.Await(),
              Fails(StatusCode::kUnavailable, "bob, CountRun"));
  EXPECT_THAT(alice_.Async<&CountRun>("bob").Await(), IsOk());
}

TEST_F(FaultTest, HandlesSurviveABrokenConnection) {
  RRef<Counter> counter = *rpc::Create<Counter>(alice_, "bob", 1).Await();
  plan_->Add({.kind = FaultKind::kSever,
              .matches = IsFrameTo(FrameKind::kRequest, "bob"),
              .at_most = 1});
  EXPECT_FALSE(alice_.Async<&CountRun>("bob").Await().ok());
  // The loss takes no call along that was made when it was known.
  const auto value = counter.Async<&Counter::Get>().Await();
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(*value, 1);
  EXPECT_EQ(*counter.Async<&Counter::Add>(1).Await(), 2);
}

TEST_F(GivenUpTest, ADeadUserIsReaped) {
  RRef<Counter> theirs =
      *rpc::Create<Counter>(cluster_["bob"], "alice", 1).Await();
  RRef<Counter> kept = *rpc::Create<Counter>(alice_, "alice", 1).Await();
  EXPECT_EQ(Counter::alive, 2);
  cluster_.Kill("bob");
  kept = {};
  EXPECT_TRUE(alice_.AwaitIdle(5s)) << alice_.GetDebugInfo().ToString();
  EXPECT_TRUE(Counter::AllGone());
}

TEST_F(GivenUpTest, AGrantToAWorkerGivenUpIsTakenBack) {
  RRef<Counter> mine =
      RRef<Counter>::Make(alice_, std::make_shared<Counter>(1));
  RRef<Counter> theirs = *rpc::Create<Counter>(alice_, "carol", 1).Await();
  ASSERT_THAT(alice_.Async<&CountRun>("bob").Await(), IsOk());
  cluster_.Kill("bob");
  ASSERT_TRUE(AwaitState(alice_, "bob", "gone"));
  for (const RRef<Counter>& counter : {mine, theirs}) {
    EXPECT_THAT(alice_.Async<&HoldConfirmed>("bob", counter).Await(10s),
                Fails(StatusCode::kUnavailable, "bob"));
  }
}

TEST_F(GivenUpTest, AHandleOfAnOwnerGivenUpFailsTheCallThatBringsIt) {
  RRef<Counter> counter = *rpc::Create<Counter>(bob_, "alice", 1).Await();
  PartAliceAndCarol();
  EXPECT_THAT(bob_.Async<&HoldConfirmed>("carol", counter).Await(10s),
              Fails(StatusCode::kUnavailable, "alice"));
}

// Nobody else tells the two that they can reach each other again.
TEST_F(GivenUpTest, AHandleOfAnOwnerGivenUpServesOnceItCanBeReached) {
  RRef<Counter> counter = *rpc::Create<Counter>(bob_, "alice", 1).Await();
  PartAliceAndCarol();
  plan_->Clear();
  EXPECT_THAT(bob_.Async<&HoldConfirmed>("carol", counter).Await(10s), IsOk());
}

TEST_F(GivenUpTest, ADeadOwnerFailsItsHandlesAtOnce) {
  RRef<Counter> counter = *rpc::Create<Counter>(alice_, "bob", 1).Await();
  Future<int> call = alice_.Async<&Wait>("bob");
  ASSERT_TRUE(held_.AwaitEntered());
  cluster_.Kill("bob");
  EXPECT_THAT(call.Await(10s), Fails(StatusCode::kUnavailable, "bob"));
  EXPECT_THAT(counter.Async<&Counter::Get>().Await(10s),
              Fails(StatusCode::kUnavailable, "bob"));
  EXPECT_THAT(alice_.Async<&HoldConfirmed>("carol", counter).Await(10s),
              Fails(StatusCode::kUnavailable, "bob"));
}

TEST_F(GivenUpTest, ARestartedOwnerIsAnotherOne) {
  RRef<Counter> counter = *rpc::Create<Counter>(alice_, "bob", 1).Await();
  cluster_.Restart("bob");
  EXPECT_THAT(counter.Async<&Counter::Get>().Await(),
              Fails(StatusCode::kUnavailable, "bob"));
  EXPECT_THAT(rpc::Create<Counter>(alice_, "bob", 1).Await(), IsOk());
}

// Nothing was heard of it on the new connection, so that it is still given up
// when that breaks, too.
TEST_F(GivenUpTest, ACallToAWorkerGivenUpFailsWithItsConnection) {
  ASSERT_THAT(alice_.Async<&CountRun>("bob").Await(), IsOk());
  plan_->Add({.kind = FaultKind::kDrop,
              .matches = [](const auto& from, const auto& to, const auto&) {
                return from.name == "bob" && to == "alice";
              }});
  const auto sever = [this] {
    plan_->Add({.kind = FaultKind::kSever,
                .matches = IsFrameTo(FrameKind::kRequest, "bob"),
                .at_most = 1});
    EXPECT_FALSE(alice_.Async<&CountRun>("bob").Await(10s).ok());
  };
  sever();
  ASSERT_TRUE(AwaitState(alice_, "bob", "gone"));
  Future<int> call = alice_.Async<&Wait>("bob");
  ASSERT_TRUE(held_.AwaitEntered());
  ASSERT_TRUE(AwaitState(alice_, "bob", "gone"));
  sever();
  EXPECT_THAT(call.Await(10s), Fails(StatusCode::kUnavailable, "bob, Wait"));
}

TEST_F(GivenUpTest, WatchersHearOfLostPeers) {
  Gate heard;
  alice_.WatchMembers([&](const rpc::MemberEvent& event) {
    if (event.kind == rpc::MemberEvent::Kind::kLost) heard.Open();
  });
  ASSERT_THAT(alice_.Async<&CountRun>("bob").Await(), IsOk());
  cluster_.Kill("bob");
  EXPECT_TRUE(heard.Await());
}

// A process that is no member sends frames of a real conversation, cut off and
// with changed bytes.
TEST(HostileFrames, HurtNobody) {
  auto network = std::make_shared<rpc::InProcessNetwork>();
  struct Maker final : TransportMaker {
    std::shared_ptr<rpc::InProcessNetwork> network;
    std::unique_ptr<rpc::Transport> Make(const rpc::Registry&) override {
      return network->NewTransport();
    }
  };
  auto plan = std::make_shared<rpc::FaultPlan>();
  Mutex mutex;
  std::set<std::string> heard;
  plan->Add({.matches = [&](const auto&, const std::string& to,
                            const rpc::Message& message) {
    MutexLock lock(mutex);
    if (to == "alice") heard.insert(message.header);
    return false;
  }});
  LocalCluster cluster({.names = {"alice", "bob", "carol"},
                        .fill = &FillForFaults,
                        .transports =
                            [&] {
                              auto maker = std::make_unique<Maker>();
                              maker->network = network;
                              return maker;
                            },
                        .faults = plan});
  Share(cluster);
  EXPECT_THAT(rpc::Create<Counter>(cluster["bob"], "alice", 1).Await(), IsOk());
  cluster.ExpectIdle();

  struct Deaf final : rpc::MessageHandler {
    void OnMessage(const rpc::WorkerInfo&, rpc::Message) override {}
    void OnPeerLost(const rpc::WorkerInfo&, absl::Status) override {}
  } deaf;
  rpc::WorkerInfo mallory;
  mallory.name = "mallory";
  mallory.rank = rpc::Rank{66};
  mallory.incarnation = 666;
  auto transport = network->NewTransport();
  mallory.address = transport->address();
  ASSERT_THAT(transport->Start(mallory, &deaf), IsOk());
  transport->AddPeer(cluster["alice"].self());
  std::mt19937 random(1);
  std::set<FrameKind> kinds;
  std::vector<std::string> frames{"", "\x09", std::string(3, '\xff')};
  plan->Clear();
  for (const std::string& frame : heard) {
    kinds.insert(static_cast<FrameKind>(frame.at(0)));
    for (int i = 0; i < 40; ++i) {
      std::string bad = frame.substr(0, random() % (frame.size() + 1));
      for (int k = 0; k < i % 5 && !bad.empty(); ++k) {
        bad[random() % bad.size()] = static_cast<char>(random());
      }
      frames.push_back(bad);
    }
  }
  EXPECT_THAT(
      kinds, ::testing::IsSupersetOf({FrameKind::kRequest, FrameKind::kResponse,
                                      FrameKind::kControl}));
  std::atomic<size_t> sent{0};
  for (const std::string& frame : frames) {
    transport->Send("alice", {frame, {}},
                    [&](const absl::Status& status) { sent += status.ok(); });
  }
  transport->Shutdown(1s);
  EXPECT_EQ(sent, frames.size());
  Share(cluster);
  // What mallory may have created is released with its incarnation.
  cluster.ExpectIdle();
}

}  // namespace
}  // namespace baton::testing
