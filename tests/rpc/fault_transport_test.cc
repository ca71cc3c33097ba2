// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc/transports/in_process.h"
#include "tests/rpc/transport_conformance.h"
#include "tests/support/fault.h"

namespace baton::rpc {
namespace {

using namespace std::chrono_literals;
using Headers = std::vector<std::string>;

// A plan without rules changes nothing.
INSTANTIATE_TEST_SUITE_P(FaultTransport, TransportConformance,
                         ::testing::Values(TransportKind{
                             .name = "NoFaults",
                             .network =
                                 [] {
                                   auto network =
                                       std::make_shared<InProcessNetwork>();
                                   auto plan = std::make_shared<FaultPlan>();
                                   return [network, plan] {
                                     return WithFaults(network->NewTransport(),
                                                       plan);
                                   };
                                 }}),
                         ::testing::PrintToStringParamName());

auto Header(std::string header) {
  return [header](const WorkerInfo&, const std::string&,
                  const Message& message) { return message.header == header; };
}

class FaultTransportTest : public ::testing::Test {
 protected:
  FaultTransportTest() {
    for (TestWorker* worker : {&bob_, &carol_}) {
      worker->Start();
      alice_.transport->AddPeer(worker->info);
    }
    alice_.Start();
  }
  void Send(const std::string& header, const std::string& to = "bob") {
    alice_.transport->Send(to, {header, {}}, log_.Next());
    ++sends_;
  }
  Headers Arrived(size_t count, TestWorker& at) {
    Headers headers;
    for (const auto& letter : at.mailbox.Await(count)) {
      headers.push_back(letter.message.header);
    }
    return headers;
  }
  Headers Arrived(size_t count) { return Arrived(count, bob_); }
  void ExpectAllSent() {
    const auto done = log_.Await(sends_);
    EXPECT_EQ(done.size(), sends_);
    for (const absl::Status& status : done) EXPECT_TRUE(status.ok()) << status;
  }

  std::shared_ptr<FaultPlan> plan_ = std::make_shared<FaultPlan>();
  InProcessNetwork network_;
  TestWorker alice_{"alice", 0, WithFaults(network_.NewTransport(), plan_)};
  TestWorker bob_{"bob", 1, network_.NewTransport()};
  TestWorker carol_{"carol", 2, network_.NewTransport()};
  SentLog log_;
  size_t sends_ = 0;
};

TEST_F(FaultTransportTest, DropsAfterSkippingAndAtMostSoOften) {
  plan_->Add(
      {.kind = FaultKind::kDrop, .matches = nullptr, .skip = 1, .at_most = 2});
  for (const char* header : {"a", "b", "c", "d"}) Send(header);
  EXPECT_EQ(Arrived(2), (Headers{"a", "d"}));
  EXPECT_EQ(plan_->injected(), 2);
  ExpectAllSent();
}

TEST_F(FaultTransportTest, ARuleAppliesToWhatItMatches) {
  plan_->Add({.kind = FaultKind::kDrop,
              .matches = [](const WorkerInfo& from, const std::string& to,
                            const Message&) {
                return from.name == "alice" && to == "carol";
              }});
  Send("a", "carol");
  Send("b");
  plan_->Clear();
  Send("c", "carol");
  EXPECT_EQ(Arrived(1), Headers{"b"});
  EXPECT_EQ(Arrived(1, carol_), Headers{"c"});
}

TEST_F(FaultTransportTest, ADelayedMessageIsOvertaken) {
  plan_->Add(
      {.kind = FaultKind::kDelay, .matches = Header("slow"), .delay = 500ms});
  const auto start = std::chrono::steady_clock::now();
  Send("slow");
  Send("fast");
  EXPECT_EQ(Arrived(2), (Headers{"fast", "slow"}));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 500ms);
  ExpectAllSent();
}

TEST_F(FaultTransportTest, ADuplicateArrivesTwiceAndIsSentOnce) {
  plan_->Add({.kind = FaultKind::kDuplicate, .matches = Header("twice")});
  Send("twice");
  Send("end");
  EXPECT_EQ(Arrived(3), (Headers{"twice", "twice", "end"}));
  ExpectAllSent();
  EXPECT_EQ(log_.count(), 2u);
}

TEST_F(FaultTransportTest, AReorderedMessageGoesAfterTheNextToThatPeer) {
  plan_->Add(
      {.kind = FaultKind::kReorder, .matches = Header("first"), .delay = 20s});
  Send("first");
  Send("elsewhere", "carol");
  Send("second");
  EXPECT_EQ(Arrived(2), (Headers{"second", "first"}));
  ExpectAllSent();
}

TEST_F(FaultTransportTest, AReorderedMessageDoesNotWaitForever) {
  plan_->Add({.kind = FaultKind::kReorder, .matches = nullptr, .delay = 10ms});
  Send("alone");
  EXPECT_EQ(Arrived(1), Headers{"alone"});
}

TEST_F(FaultTransportTest, ASeveredConnectionLosesTheMessageAndComesBack) {
  Send("before");
  Arrived(1);
  log_.Await(1);  // its own callback may come after its arrival
  plan_->Add({.kind = FaultKind::kSever, .matches = nullptr, .at_most = 1});
  Send("lost");
  EXPECT_EQ(log_.Await(2).at(1).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(alice_.mailbox.AwaitLost(1).size(), 1u);
  EXPECT_EQ(bob_.mailbox.AwaitLost(1).size(), 1u);
  Send("after");
  EXPECT_EQ(Arrived(2), (Headers{"before", "after"}));
}

TEST_F(FaultTransportTest, AShutdownFailsWhatIsHeldBack) {
  constexpr auto kDelay = 20s;
  plan_->Add({.kind = FaultKind::kDelay, .matches = nullptr, .delay = kDelay});
  Send("held");
  const auto start = std::chrono::steady_clock::now();
  alice_.transport->Shutdown(1s);
  EXPECT_EQ(log_.Await(1).at(0).code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kDelay / 2);
  EXPECT_EQ(bob_.mailbox.count(), 0u);
}

// Which of 200 messages get through under a plan with that seed.
Headers Survivors(uint64_t seed) {
  auto plan = std::make_shared<FaultPlan>(seed);
  plan->Add({.kind = FaultKind::kDrop,
             .matches = [](const WorkerInfo&, const std::string&,
                           const Message& m) { return m.header != "end"; },
             .probability = 0.5});
  InProcessNetwork network;
  TestWorker alice("alice", 0, WithFaults(network.NewTransport(), plan));
  TestWorker bob("bob", 1, network.NewTransport());
  alice.Start();
  bob.Start();
  alice.transport->AddPeer(bob.info);
  SentLog log;
  for (int i = 0; i < 200; ++i) {
    alice.transport->Send("bob", {absl::StrCat(i), {}}, log.Next());
  }
  alice.transport->Send("bob", {"end", {}}, log.Next());
  Headers headers;
  const auto expected = static_cast<size_t>(201 - plan->injected());
  for (const auto& letter : bob.mailbox.Await(expected)) {
    headers.push_back(letter.message.header);
  }
  return headers;
}

TEST(FaultPlan, TheSeedDecidesEveryDraw) {
  const Headers one = Survivors(1);
  EXPECT_EQ(one, Survivors(1));
  EXPECT_NE(one, Survivors(2));
  EXPECT_GT(one.size(), 60u);
  EXPECT_LT(one.size(), 140u);
}

}  // namespace
}  // namespace baton::rpc
