// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <signal.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

// Small messages between workers that share memory.
namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

// Until alice writes to the ring that bob reads; what was sent before may still
// be on its way by the stream.
struct Pair {
  explicit Pair(const GrpcOptions& alices = {}, const GrpcOptions& bobs = {})
      : alice(NewWorker("alice", 0, alices)), bob(NewWorker("bob", 1, bobs)) {
    alice->transport->AddPeer(bob->info);
    bob->transport->AddPeer(alice->info);
    alice->Start();
    bob->Start();
  }
  void Meet() {
    EXPECT_TRUE(alice->SendTo("bob", {"hello", {}}).ok());
    EXPECT_TRUE(alice->AwaitRings());
    EXPECT_TRUE(bob->AwaitRings());
  }

  std::unique_ptr<TestWorker> alice, bob;
};

std::string Detail(TestWorker& worker) {
  return worker.transport->Channels().at(0).detail;
}

TEST(GrpcRing, TakesOverWithoutChangingTheOrder) {
  for (int round = 0; round < 3; ++round) {
    Pair pair;
    SentLog log;
    int count = 0;
    const auto send = [&] {
      pair.alice->transport->Send("bob", {absl::StrCat(count++), {}},
                                  log.Next());
    };
    const auto by_ring = [&] {
      const auto channels = pair.alice->transport->Channels();
      return !channels.empty() &&
             channels[0].detail.find("shared memory") != std::string::npos;
    };
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!by_ring() && std::chrono::steady_clock::now() < deadline) {
      // A flood would only put off what it waits for.
      ASSERT_TRUE(pair.alice->SendTo("bob", {absl::StrCat(count++), {}}).ok());
    }
    for (int i = 0; i < 1000; ++i) send();
    const auto letters = pair.bob->mailbox.Await(static_cast<size_t>(count));
    ASSERT_EQ(letters.size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(letters[static_cast<size_t>(i)].message.header,
                absl::StrCat(i));
    }
    for (const auto& status : log.Await(1000)) {
      EXPECT_TRUE(status.ok());
    }
  }
}

TEST(GrpcRing, IsToldToPeopleAndCounted) {
  Pair pair;
  pair.Meet();
  EXPECT_THAT(Detail(*pair.alice),
              HasSubstr("small messages by shared memory"));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(
        pair.alice->SendTo("bob", {"1234", {Tensor::Zeros({16})}}).ok());
  }
  pair.bob->mailbox.Await(11);
  const ChannelInfo sent = pair.alice->transport->Channels().at(0);
  const ChannelInfo got = pair.bob->transport->Channels().at(0);
  EXPECT_EQ(sent.messages_sent, 11u);
  EXPECT_EQ(sent.bytes_sent, 10u * 68 + 5);
  EXPECT_EQ(got.messages_received, 11u);
  EXPECT_EQ(got.bytes_received, 10u * 68 + 5);
}

TEST(GrpcRing, IsNotThereForWhoDoesNotWantOne) {
  Pair pair({.message_ring = false});
  ASSERT_TRUE(pair.alice->SendTo("bob", {"hello", {}}).ok());
  EXPECT_TRUE(pair.alice->AwaitChannel("shared memory"));
  EXPECT_TRUE(pair.bob->AwaitChannel("shared memory"));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pair.alice->SendTo("bob", {"a", {}}).ok());
    ASSERT_TRUE(pair.bob->SendTo("alice", {"b", {}}).ok());
  }
  EXPECT_THAT(Detail(*pair.alice), Not(HasSubstr("small messages")));
  EXPECT_THAT(Detail(*pair.bob), Not(HasSubstr("small messages")));
  EXPECT_EQ(pair.alice->mailbox.lost(), 0u);
}

// The shapes of so many tensors alone are several times what the ring holds.
TEST(GrpcRing, CarriesMessagesThatAreLargerThanIt) {
  Pair pair;
  pair.Meet();
  const Shape shape({0, 7, 7, 7});
  const std::vector<Tensor> tensors(30'000, Tensor::Zeros(shape));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pair.alice->SendTo("bob", {"many", tensors}).ok());
    ASSERT_TRUE(pair.alice->SendTo("bob", {"one", {}}).ok());
  }
  const auto letters = pair.bob->mailbox.Await(7);
  ASSERT_EQ(letters.size(), 7u);
  for (size_t i = 1; i < 7; i += 2) {
    ASSERT_EQ(letters[i].message.tensors.size(), tensors.size());
    EXPECT_EQ(letters[i].message.tensors.back().shape(), shape);
    EXPECT_EQ(letters[i + 1].message.header, "one");
  }
}

// Both sides fill the ring faster than the other one reads it.
TEST(GrpcRing, IsWaitedForWhenItIsFull) {
  Pair pair;
  pair.Meet();
  constexpr size_t kCount = 400;
  SentLog log;
  std::vector<std::thread> senders;
  for (const bool there : {true, false}) {
    senders.emplace_back([&, there] {
      TestWorker& from = there ? *pair.alice : *pair.bob;
      for (size_t i = 0; i < kCount; ++i) {
        from.transport->Send(there ? "bob" : "alice",
                             {absl::StrCat(i), {Tensor::Zeros({3000})}},
                             log.Next());
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  for (const auto& status : log.Await(2 * kCount)) EXPECT_TRUE(status.ok());
  for (TestWorker* worker : {pair.alice.get(), pair.bob.get()}) {
    const size_t before = worker == pair.bob.get() ? 1 : 0;
    const auto letters = worker->mailbox.Await(kCount + before);
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(letters[i + before].message.header, absl::StrCat(i));
    }
  }
}

TEST(GrpcRing, IsNotReadWhileTooMuchWaits) {
  Pair pair({}, {.max_undelivered_bytes = 100'000});
  pair.Meet();
  pair.bob->mailbox.Await(1);
  Promise<void> entered, go_on;
  pair.bob->mailbox.OnEach([&](const Mailbox::Letter&) {
    entered.Set(absl::OkStatus());
    EXPECT_TRUE(go_on.future().Await().ok());
  });
  constexpr size_t kCount = 100;
  SentLog log;
  for (size_t i = 0; i < kCount; ++i) {
    pair.alice->transport->Send("bob", {"", {Tensor::Zeros({2500})}},
                                log.Next());
  }
  EXPECT_TRUE(entered.future().Await().ok());
  // 100 kB there, a ring that is full, and one that was being read.
  EXPECT_GE(log.Await(10).size(), 10u);
  log.AwaitFor(kCount, milliseconds(300));
  EXPECT_LT(log.count(), 40u);
  go_on.Set(absl::OkStatus());
  EXPECT_EQ(pair.bob->mailbox.Await(kCount + 1).size(), kCount + 1);
  EXPECT_EQ(log.Await(kCount).size(), kCount);
}

TEST(GrpcRing, IsMadeAnewWithEachConnection) {
  Pair pair;
  for (size_t round = 1; round <= 5; ++round) {
    pair.Meet();
    EXPECT_EQ(pair.bob->mailbox.Await(round).size(), round);
    pair.alice->transport->Disconnect("bob", nullptr);
    pair.alice->mailbox.AwaitLost(round);
    pair.bob->mailbox.AwaitLost(round);
  }
}

// As are chunks of large messages, which come by the stream.
TEST(GrpcRing, IsEmptiedBeforeAGoodbyeCounts) {
  for (size_t round = 0; round < 10; ++round) {
    // In every other round bob reads no more than a few at once.
    const size_t most = round % 2 == 0 ? 100'000 : 10'000;
    Pair pair({}, {.max_undelivered_bytes = most});
    pair.Meet();
    SentLog log;
    constexpr size_t kCount = 500;
    for (size_t i = 0; i < kCount; ++i) {
      const Message small{"", {Tensor::Zeros({1000})}};
      pair.alice->transport->Send(
          "bob", i % 100 == round ? InChunks("") : small, log.Next());
    }
    pair.alice->transport->Shutdown(milliseconds(5000));
    EXPECT_EQ(pair.bob->mailbox.Await(kCount + 1).size(), kCount + 1);
    for (const auto& status : log.Await(kCount)) EXPECT_TRUE(status.ok());
    pair.bob->mailbox.AwaitLost(1);
  }
}

// A process of its own, which echoes.
struct RingPeer {
  ChildProcess process{{baton::testing::ProgramPath("echo_peer"), "bob"}};
  WorkerInfo info{"bob", Rank{1}, 4711, process.ReadLine()};
};

class GrpcRingLoss : public ::testing::Test {
 protected:
  // A lease that ends no test of those that know of the loss without it.
  explicit GrpcRingLoss(milliseconds lease = milliseconds(60'000))
      : alice_(NewWorker(
            "alice", 0,
            {.reconnect_timeout = milliseconds(300), .lease = lease})) {
    alice_->Start();
    WorkerInfo bob = bob_.info;
    bob.incarnation = 0;  // not seen yet: the first connection takes its time
    alice_->transport->AddPeer(bob);
    EXPECT_TRUE(alice_->SendTo("bob", {"hello", {}}).ok());
    EXPECT_TRUE(alice_->AwaitRings());
    alice_->mailbox.Await(1);
  }
  void Echo(int count) {
    for (int i = 0; i < count; ++i) {
      const size_t before = alice_->mailbox.count();
      ASSERT_TRUE(alice_->SendTo("bob", {"ack", {}}).ok());
      alice_->mailbox.Await(before + 1);
    }
  }

  RingPeer bob_;
  std::unique_ptr<TestWorker> alice_;
};

class GrpcRingSilence : public GrpcRingLoss {
 protected:
  GrpcRingSilence() : GrpcRingLoss(milliseconds(1000)) {}
};

// The reader sleeps, or spins, or is at it.
TEST_F(GrpcRingLoss, OfAProcessThatIsKilledAtRestIsTold) {
  Echo(20);
  bob_.process.Kill(SIGKILL);
  EXPECT_EQ(alice_->mailbox.AwaitLost(1).at(0).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_FALSE(alice_->SendTo("bob", {"a", {}}).ok());
}

TEST_F(GrpcRingLoss, OfAProcessThatIsKilledAmidTrafficIsTold) {
  SentLog log;
  constexpr size_t kCount = 3000;
  for (size_t i = 0; i < kCount; ++i) {
    alice_->transport->Send("bob", {"echo", {Tensor::Zeros({1000})}},
                            log.Next());
    if (i == kCount / 2) bob_.process.Kill(SIGKILL);
  }
  alice_->mailbox.AwaitLost(1);
  EXPECT_EQ(log.Await(kCount).size(), kCount);  // whatever became of them
}

TEST_F(GrpcRingSilence, OfAProcessThatIsStoppedIsToldAfterTheLease) {
  Echo(20);
  bob_.process.Kill(SIGSTOP);
  SentLog log;
  constexpr size_t kCount = 200;  // more than the ring holds
  for (size_t i = 0; i < kCount; ++i) {
    alice_->transport->Send("bob", {"echo", {Tensor::Zeros({1000})}},
                            log.Next());
  }
  EXPECT_EQ(alice_->mailbox.AwaitLost(1).at(0).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(log.Await(kCount).size(), kCount);
  bob_.process.Kill(SIGCONT);
}

}  // namespace
}  // namespace baton::rpc
