// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

// Shared memory between processes of which one ends.
namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

constexpr char kName[] = "shared memory";

struct Peer {
  ChildProcess process{{testing::ProgramPath("echo_peer"), "bob"}};
  WorkerInfo info{"bob", Rank{1}, 4711, process.ReadLine()};
};

class SharedMemoryLoss : public ::testing::Test {
 protected:
  SharedMemoryLoss() {
    alice_->Start();
    Meet(*bob_);
  }
  void Meet(const Peer& peer) {
    alice_->transport->AddPeer(peer.info);
    const size_t before = alice_->mailbox.count();
    EXPECT_TRUE(alice_->SendTo("bob", {"ack", {}}).ok());
    alice_->mailbox.Await(before + 1);  // a tensor's answer may overtake it
    EXPECT_TRUE(alice_->AwaitChannel(kName));
  }
  TensorChannelInfo Info() {
    for (const TensorChannelInfo& info : alice_->transport->TensorChannels()) {
      if (info.name == kName) return info;
    }
    return {};
  }
  // One byte for all elements, so that no other tensor is taken for it.
  static Tensor Block(int value, int64_t bytes = 30000) {
    return Tensor::Full({bytes}, value, {.dtype = DType::kU8});
  }
  static bool Is(const Tensor& tensor, int value) {
    const Tensor expected = Block(value, tensor.numel());
    return std::memcmp(tensor.raw_data(), expected.raw_data(),
                       expected.nbytes()) == 0;
  }

  // Made to be sent to bob in place, now.
  Tensor MadeForBob(int value) {
    const Tensor block = Block(value);
    Tensor made = alice_->transport->EmptyFor("bob", block.shape(),
                                              {.dtype = block.dtype()});
    if (made.defined()) made.CopyFrom(block);
    return made;
  }
  // What bob says to it.
  Tensor EchoMoved(Tensor tensor) {
    const size_t before = alice_->mailbox.count();
    Message message{"echo", {}};
    message.tensors.push_back(std::move(tensor));
    EXPECT_TRUE(alice_->SendTo("bob", std::move(message)).ok());
    return alice_->mailbox.Await(before + 1).back().message.tensors.at(0);
  }

  std::unique_ptr<Peer> bob_ = std::make_unique<Peer>();
  std::unique_ptr<TestWorker> alice_ =
      NewWorker("alice", 0, {.reconnect_timeout = std::chrono::seconds(10)});
};

TEST_F(SharedMemoryLoss, OfAPeerThatHoldsTensorsFreesTheirMemory) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(alice_->SendTo("bob", {"keep", {Block(i)}}).ok());
  }
  alice_->mailbox.Await(3);
  EXPECT_EQ(Info().leases, 2u);
  bob_->process.Kill(SIGKILL);
  alice_->mailbox.AwaitLost(1);
  EXPECT_EQ(Info().leases, 0u);
  EXPECT_EQ(Info().capacity_bytes, 0u);
  Peer next;
  Meet(next);
  ASSERT_TRUE(alice_->SendTo("bob", {"echo", {Block(7)}}).ok());
  EXPECT_TRUE(Is(alice_->mailbox.Await(5).back().message.tensors.at(0), 7));
  EXPECT_EQ(Info().tensors_sent, 1u);
}

TEST_F(SharedMemoryLoss, OfTheSenderLeavesTensorsAsTheyWere) {
  // Until the direction from bob is open as well.
  Tensor got;
  for (size_t count = 2; Info().tensors_received == 0; ++count) {
    ASSERT_LT(count, 1000u);
    ASSERT_TRUE(alice_->SendTo("bob", {"echo", {Block(1)}}).ok());
    got = alice_->mailbox.Await(count).back().message.tensors.at(0);
  }
  bob_->process.Kill(SIGKILL);
  bob_->process.Wait();
  alice_->mailbox.AwaitLost(1);
  EXPECT_TRUE(Is(got, 1));
  got.Fill(2);
  EXPECT_TRUE(Is(got, 2));
}

TEST_F(SharedMemoryLoss, OfTheConnectionAloneIsMadeGood) {
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(alice_->SendTo("bob", {"keep", {Block(round)}}).ok());
    EXPECT_EQ(Info().tensors_sent, 1u);
    alice_->transport->Disconnect("bob", nullptr);
    alice_->mailbox.AwaitLost(static_cast<size_t>(round));
    Meet(*bob_);
  }
}

// What was made for a peer that is gone is a tensor like any other.
TEST_F(SharedMemoryLoss, OfAPeerThatTensorsWereMadeForLeavesThemToTheirOwner) {
  Tensor made = MadeForBob(1);
  ASSERT_TRUE(made.defined());
  bob_->process.Kill(SIGKILL);
  alice_->mailbox.AwaitLost(1);
  EXPECT_TRUE(Is(made, 1));
  made.CopyFrom(Block(2));
  Peer next;
  Meet(next);
  EXPECT_EQ(Info().made_bytes, 0u);
  EXPECT_TRUE(Is(EchoMoved(std::move(made)), 2));
  EXPECT_EQ(Info().sent_in_place, 0u);
  EXPECT_TRUE(Is(EchoMoved(MadeForBob(3)), 3));
  EXPECT_EQ(Info().sent_in_place, 1u);
}

// Both processes still have the memory of the first connection.
TEST_F(SharedMemoryLoss, OfTheConnectionMakesWhatWasMadeForItACopy) {
  Tensor made = MadeForBob(4);
  ASSERT_TRUE(made.defined());
  alice_->transport->Disconnect("bob", nullptr);
  alice_->mailbox.AwaitLost(1);
  Meet(*bob_);
  Tensor view = made.Slice(0, 5, 6);
  EXPECT_TRUE(Is(EchoMoved(std::move(made)), 4));
  EXPECT_EQ(view.Item(), 4);
  EXPECT_EQ(Info().sent_in_place, 0u);
}

TEST_F(SharedMemoryLoss, OfPeersThatAreSentTensorsInPlaceLeavesNothingOut) {
  constexpr size_t kRounds = 6;
  for (size_t round = 1; round <= kRounds; ++round) {
    std::atomic<bool> lost{false};
    std::atomic<size_t> sent{0};
    std::vector<std::thread> senders;
    for (int i = 0; i < 2; ++i) {
      senders.emplace_back([&, i] {
        while (!lost) {
          Message message{i == 0 ? "keep" : "ack", {}};
          message.tensors.push_back(MadeForBob(i));
          if (!message.tensors.back().defined())
            message.tensors.back() = Block(i);
          if (alice_->SendTo("bob", std::move(message)).ok()) ++sent;
        }
      });
    }
    while (sent < 10 * round) std::this_thread::yield();
    bob_->process.Kill(SIGKILL);
    alice_->mailbox.AwaitLost(round);
    lost = true;
    alice_->transport->RemovePeer("bob");  // whom a sender dials again
    for (std::thread& sender : senders) sender.join();
    bob_ = std::make_unique<Peer>();
    Meet(*bob_);
    EXPECT_EQ(Info().leases, 0u);
    EXPECT_EQ(Info().made_bytes, 0u);
    EXPECT_TRUE(Is(EchoMoved(MadeForBob(9)), 9));
    EXPECT_EQ(Info().sent_in_place, 1u);
  }
}

// The first ones travel by the stream, until there is room.
TEST_F(SharedMemoryLoss, DoesNotComeToAPeerThatHoldsMoreThanTheBudget) {
  auto carol = NewWorker("carol", 2, {.shared_memory_bytes = 20 << 20});
  carol->Start();
  carol->transport->AddPeer(bob_->info);
  ASSERT_TRUE(carol->SendTo("bob", {"keep", {}}).ok());
  ASSERT_TRUE(carol->AwaitChannel(kName));
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const auto info_of = [&] { return carol->transport->TensorChannels().at(0); };
  size_t count = 0;
  while (count < 40 || (info_of().leases <= 5 &&
                        std::chrono::steady_clock::now() < deadline)) {
    const int value = static_cast<int>(count++ % 200);
    ASSERT_TRUE(carol->SendTo("bob", {"keep", {Block(value, 1 << 20)}}).ok());
  }
  EXPECT_EQ(carol->mailbox.Await(count + 1).size(), count + 1);
  const TensorChannelInfo info = info_of();
  EXPECT_GT(info.leases, 5u);
  EXPECT_LE(info.leased_bytes, 20u << 20);
  EXPECT_GT(info.declined, 10u);
  EXPECT_EQ(carol->mailbox.lost(), 0u);
}

TEST_F(SharedMemoryLoss, LeasesComeBackOfThemselves) {
  constexpr int kCount = 200;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(alice_->SendTo("bob", {"ack", {Block(i)}}).ok());
  }
  alice_->mailbox.Await(kCount + 1);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (Info().leases > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Info().leases, 0u);
  EXPECT_EQ(Info().leased_bytes, 0u);
  EXPECT_GT(Info().tensors_sent, 0u);
}

// Some of it for each of many at the same time.
TEST_F(SharedMemoryLoss, DoesNotComeFromManyPeers) {
  std::vector<std::unique_ptr<TestWorker>> others;
  for (int i = 0; i < 8; ++i) {
    others.push_back(NewWorker(absl::StrCat("w", i), i + 2));
    others.back()->Start();
    others.back()->transport->AddPeer(bob_->info);
    others.back()->transport->AddPeer(alice_->info);
  }
  alice_->mailbox.OnEach([](const Mailbox::Letter&) {});
  for (int i = 0; i < 20; ++i) {
    for (size_t w = 0; w < others.size(); ++w) {
      const int value = i * 8 + static_cast<int>(w);
      for (const char* to : {"bob", "alice"}) {
        ASSERT_TRUE(
            others[w]->SendTo(to, {absl::StrCat(value), {Block(value)}}).ok());
      }
    }
  }
  for (auto& other : others) {
    for (const auto& letter : other->mailbox.Await(20)) {
      EXPECT_TRUE(Is(letter.message.tensors.at(0),
                     std::atoi(letter.message.header.c_str())));
    }
  }
  for (const auto& letter : alice_->mailbox.Await(161)) {
    if (letter.message.tensors.empty()) continue;
    EXPECT_TRUE(Is(letter.message.tensors.at(0),
                   std::atoi(letter.message.header.c_str())));
  }
}

}  // namespace
}  // namespace baton::rpc
