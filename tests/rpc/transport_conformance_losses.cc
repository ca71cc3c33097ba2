// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <thread>
#include <utility>

#include "core/future.h"
#include "tests/rpc/transport_conformance.h"

// Connections that break, and workers that end.
namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

}  // namespace

TEST_P(TransportConformance, TensorsOutliveTheirConnectionAndTheirSender) {
  MakePair();
  AwaitChannel();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(alice_->SendTo("bob", {"keep", {Pattern(20000, i)}}).ok());
  }
  const size_t count = GetParam().channel.empty() ? 3 : 4;
  auto letters = bob_->mailbox.Await(count);
  alice_.reset();
  bob_->mailbox.AwaitLost(1);
  bob_.reset();
  int found = 0;
  for (const auto& letter : letters) {
    if (letter.message.tensors.empty()) continue;
    const Tensor& tensor = letter.message.tensors[0];
    EXPECT_TRUE(SameBytes(tensor, Pattern(20000, *tensor.data<uint8_t>())));
    tensor.Fill(100);
    ++found;
  }
  EXPECT_EQ(found, 3);
}

TEST_P(TransportConformance, PeersLearnOfAShutdownOnce) {
  MakePair();
  ASSERT_TRUE(alice_->SendTo("bob", {"", {Pattern(100000)}}).ok());
  bob_->mailbox.Await(1);
  bob_->transport->Shutdown(milliseconds(2000));
  const auto lost = alice_->mailbox.AwaitLost(1);
  EXPECT_EQ(lost.at(0).code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(lost[0].message().find("bob"), std::string::npos) << lost[0];
  EXPECT_EQ(alice_->SendTo("bob", {}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(alice_->mailbox.lost(), 1u);
  EXPECT_EQ(bob_->mailbox.lost(), 0u);
}

TEST_P(TransportConformance, ShutdownDeliversWhatIsQueued) {
  MakePair();
  SentLog log;
  constexpr int kCount = 300;
  for (int i = 0; i < kCount; ++i) {
    alice_->transport->Send("bob", {"", {Pattern(i % 10 == 0 ? 500000 : 10)}},
                            log.Next());
  }
  alice_->transport->Shutdown(milliseconds(5000));
  EXPECT_EQ(bob_->mailbox.Await(kCount).size(), kCount);
  for (const absl::Status& status : log.Await(kCount)) {
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_P(TransportConformance, ShutdownReturnsWhenAllIsReported) {
  MakePair();
  AwaitChannel();
  constexpr size_t kCount = 40;
  SentLog log;
  for (size_t i = 0; i < kCount; ++i) {
    alice_->transport->Send("bob", {"amid", {Pattern(70000), Pattern(70000)}},
                            log.Next());
  }
  bob_->mailbox.Await(1);  // of them, or of the channel's
  alice_->transport->Shutdown(milliseconds(0));
  EXPECT_EQ(log.count(), kCount);
}

TEST_P(TransportConformance, NothingIsHandledAfterShutdown) {
  MakePair();
  std::atomic<bool> running{true};
  std::thread flood([&] {
    while (running) alice_->SendTo("bob", {"flood", {}}).IgnoreError();
  });
  bob_->mailbox.Await(20);
  bob_->transport->Shutdown(milliseconds(1000));
  const size_t count = bob_->mailbox.count();
  bob_->transport->Shutdown(milliseconds(1000));  // idempotent
  alice_->mailbox.AwaitLost(1);
  EXPECT_EQ(bob_->mailbox.count(), count);
  EXPECT_EQ(bob_->SendTo("alice", {}).code(), absl::StatusCode::kUnavailable);
  running = false;
  flood.join();
  EXPECT_EQ(bob_->mailbox.count(), count);
}

TEST_P(TransportConformance, ASeveredConnectionIsMadeAgain) {
  MakePair();
  for (int round = 1; round <= 3; ++round) {
    TestWorker& from = round % 2 == 1 ? *alice_ : *bob_;
    TestWorker& to = round % 2 == 1 ? *bob_ : *alice_;
    ASSERT_TRUE(from.SendTo(to.info.name, {"a", {Pattern(70000)}}).ok());
    to.mailbox.Await(static_cast<size_t>((round + 1) / 2));
    alice_->transport->Disconnect("bob", nullptr);
    EXPECT_EQ(alice_->mailbox.AwaitLost(round).size(), round);
    EXPECT_EQ(bob_->mailbox.AwaitLost(round).size(), round);
  }
  EXPECT_TRUE(alice_->SendTo("bob", {"last", {}}).ok());
}

// The handler of the first letter holds up the loss; while it does nothing that
// the connection took along may be reported.
TEST_P(TransportConformance, WhatAConnectionTookAlongFailsAfterItsLoss) {
  MakePair();
  ASSERT_TRUE(alice_->SendTo("bob", {"", {Pattern(70000)}}).ok());
  SentLog failures;
  std::atomic<int> early{0};
  Promise<void> entered;
  alice_->mailbox.OnEach([&](const Mailbox::Letter&) {
    entered.Set(absl::OkStatus());
    failures.AwaitFor(1, milliseconds(200));
  });
  ASSERT_TRUE(bob_->SendTo("alice", {"hold", {}}).ok());
  ASSERT_TRUE(entered.future().Await().ok());
  constexpr int kCount = 20;
  for (int i = 0; i < kCount; ++i) {
    alice_->transport->Send(
        "bob", {"", {Pattern(4 << 20)}},
        [&, next = failures.Next()](absl::Status s) mutable {
          if (!s.ok() && alice_->mailbox.lost() == 0) {
            ++early;
          }
          next(s);
        });
  }
  Promise<size_t> lost_then;
  alice_->transport->Disconnect("bob",
                                [&] { lost_then.Set(alice_->mailbox.lost()); });
  EXPECT_EQ(failures.Await(kCount).size(), kCount);
  EXPECT_EQ(early, 0);
  EXPECT_GE(*lost_then.future().Await(), 1u);
}

TEST_P(TransportConformance, ADisconnectOfNobodyIsOverAtOnce) {
  MakePair();
  for (const char* name : {"bob", "nobody"}) {
    Promise<void> done;
    alice_->transport->Disconnect(name, [&] { done.Set(absl::OkStatus()); });
    EXPECT_TRUE(done.future().Await().ok());
  }
  EXPECT_EQ(alice_->mailbox.lost(), 0u);
}

TEST_P(TransportConformance, SentRunsOnceForEachMessageWhateverBreaks) {
  MakePair();
  SentLog log;
  constexpr size_t kCount = 400;
  for (size_t i = 0; i < kCount; ++i) {
    Message message{"", {Pattern(i % 8 == 0 ? 2 << 20 : 10)}};
    alice_->transport->Send("bob", std::move(message), log.Next());
    if (i % 100 == 50) alice_->transport->Disconnect("bob", nullptr);
  }
  alice_->transport->Shutdown(milliseconds(100));
  EXPECT_EQ(log.Await(kCount).size(), kCount);
  bob_.reset();
  alice_.reset();
  EXPECT_EQ(log.count(), kCount);
}

TEST_P(TransportConformance, ANewIncarnationTakesThePlaceOfTheOld) {
  MakePair();
  ASSERT_TRUE(alice_->SendTo("bob", {"one", {}}).ok());
  bob_->mailbox.Await(1);
  auto reborn = NewWorker("bob", 1);
  reborn->Start();
  alice_->transport->AddPeer(reborn->info);
  alice_->mailbox.AwaitLost(1);
  ASSERT_TRUE(alice_->SendTo("bob", {"two", {}}).ok());
  EXPECT_EQ(reborn->mailbox.Await(1).at(0).message.header, "two");
  EXPECT_EQ(bob_->mailbox.count(), 1u);
}

}  // namespace baton::rpc
