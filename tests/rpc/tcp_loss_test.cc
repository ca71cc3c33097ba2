// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/rpc/grpc_worker.h"
#include "tests/rpc/tcp_ends.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

// Connections that end while tensors are under way by TCP.
namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

class TcpLoss : public TcpWays {};

INSTANTIATE_TEST_SUITE_P(In, TcpLoss, ::testing::Bool(), [](const auto& info) {
  return info.param ? "Tls" : "Clear";
});

TEST_P(TcpLoss, FailsWhatIsUnderWayAndLetsGoOfIt) {
  Open();
  const Tensor much = Bytes(kMuch, 3), promised = Bytes(50'000, 4);
  const Sent sent = Send(alice_, much), queued = Send(alice_, promised);
  const auto imported = Import(bob_, promised, queued.ticket);
  ASSERT_TRUE(imported.ok());
  alice_.channel->OnLost();
  EXPECT_FALSE(sent.left.Await(kSoon).ok());
  EXPECT_FALSE(queued.left.Await(kSoon).ok());
  EXPECT_TRUE(Within([&] { return much.storage().use_count() == 1; }));
  EXPECT_EQ(alice_.channel->info().leases, 0u);
  bob_.channel->OnLost();
  EXPECT_FALSE(imported->given.Await(kSoon).ok());
}

TEST_P(TcpLoss, ComesWithAReasonWhereTheConnectionLivesOn) {
  Open();
  alice_.channel->OnLost();
  EXPECT_THAT(bob_.port->AwaitBroken(), ::testing::HasSubstr("socket"));
}

TEST_P(TcpLoss, LeavesNoDescriptorsBehind) {
  Open();
  Lose();
  // Those of the pollers, and of one connection at most.
  const size_t before = Descriptors();
  for (int i = 0; i < 20; ++i) {
    Open();
    Send(alice_, Bytes(kMuch / 16, 3));
    Lose();
  }
  EXPECT_TRUE(Within([&] { return Descriptors() <= before; }));
}

TEST_P(TcpLoss, BeforeItOpensLeavesNothingBehind) {
  Open();
  Lose();
  const size_t before = Descriptors();
  for (int i = 0; i < 20; ++i) {
    Connect();
    Lose();
  }
  EXPECT_TRUE(Within([&] { return Descriptors() <= before; }));
}

// With workers around it.
struct TcpPeer {
  ChildProcess process{{testing::ProgramPath("echo_peer"), "bob"}};
  WorkerInfo info{"bob", Rank{1}, 4711, process.ReadLine()};
};

class TcpWorkers : public ::testing::Test {
 protected:
  static constexpr char kName[] = "TCP";
  static GrpcOptions Options() {
    return {.reconnect_timeout = std::chrono::seconds(10),
            .shared_memory = false};
  }
  void Meet(TestWorker& alice, const WorkerInfo& bob) {
    alice.transport->AddPeer(bob);
    EXPECT_TRUE(alice.SendTo("bob", {"ack", {}}).ok());
    EXPECT_TRUE(alice.AwaitChannel(kName));
  }
  static TensorChannelInfo Info(TestWorker& worker) {
    for (const TensorChannelInfo& info : worker.transport->TensorChannels()) {
      if (info.name == kName) return info;
    }
    return {};
  }
};

TEST_F(TcpWorkers, APeerThatIsKilledAmidTensorsFailsThem) {
  const auto alice = NewWorker("alice", 0, Options());
  alice->Start();
  TcpPeer bob;
  Meet(*alice, bob.info);
  bob.process.Kill(SIGSTOP);
  SentLog log;
  // More than the kernels hold.
  const Tensor large = Tensor::Zeros({64 << 20}, {.dtype = DType::kU8});
  for (int i = 0; i < 8; ++i)
    alice->transport->Send("bob", {"ack", {large}}, log.Next());
  bob.process.Kill(SIGKILL);
  const auto outcomes = log.Await(8);
  ASSERT_EQ(outcomes.size(), 8u);
  EXPECT_EQ(outcomes.back().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(alice->mailbox.AwaitLost(1).size(), 1u);
  TcpPeer next;
  alice->transport->RemovePeer("bob");
  Meet(*alice, next.info);
  const size_t before = alice->mailbox.count();
  ASSERT_TRUE(alice->SendTo("bob", {"echo", {large}}).ok());
  alice->mailbox.Await(before + 1);
  EXPECT_EQ(Info(*alice).tensors_sent, 1u);
}

TEST_F(TcpWorkers, AMessageThatThePeerDoesNotTakeIsWithdrawn) {
  GrpcOptions small = Options();
  small.max_message_bytes = 1 << 20;
  const auto alice = NewWorker("alice", 0, Options()),
             bob = NewWorker("bob", 1, small);
  alice->Start();
  bob->Start();
  Meet(*alice, bob->info);
  const Tensor large = Tensor::Zeros({2 << 20}, {.dtype = DType::kU8});
  EXPECT_EQ(alice->SendTo("bob", {"", {large}}).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Info(*alice).leases, 0u);
  const Tensor tensor = Tensor::Ones({100'000});
  ASSERT_TRUE(alice->SendTo("bob", {"next", {tensor}}).ok());
  const auto letters = bob->mailbox.Await(2);
  ASSERT_EQ(letters.at(1).message.tensors.size(), 1u);
  EXPECT_EQ(letters[1].message.tensors[0].ToVector<float>(),
            tensor.ToVector<float>());
}

// Messages with and without chunks wait for tensors of one socket, whose order
// is that in which they left.
TEST_F(TcpWorkers, LargeAndSmallMessagesDoNotWaitForEachOther) {
  GrpcOptions options = Options();
  options.max_undelivered_bytes = 200'000;
  const auto alice = NewWorker("alice", 0, options),
             bob = NewWorker("bob", 1, options);
  alice->Start();
  bob->Start();
  Meet(*alice, bob->info);
  SentLog log;
  constexpr size_t kCount = 400;
  for (size_t i = 0; i < kCount; ++i) {
    const Message small{std::string(50'000, 'h'),
                        {Tensor::Full({20'000}, 1.0 * i)}};
    alice->transport->Send(
        "bob", i % 5 == 0 ? InChunks(small.header, small.tensors) : small,
        log.Next());
  }
  std::vector<bool> seen(kCount);
  for (const auto& letter : bob->mailbox.Await(kCount + 1)) {
    if (letter.message.tensors.empty()) continue;
    const auto values = letter.message.tensors[0].ToVector<float>();
    EXPECT_EQ(values.front(), values.back());
    seen.at(static_cast<size_t>(values.front())) = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kCount);
  for (const absl::Status& status : log.Await(kCount)) EXPECT_TRUE(status.ok());
}

TEST_F(TcpWorkers, AGoodbyeThatOvertakesTensorsWaitsForThem) {
  const auto alice = NewWorker("alice", 0, Options()),
             bob = NewWorker("bob", 1, Options());
  alice->Start();
  bob->Start();
  Meet(*alice, bob->info);
  SentLog log;
  constexpr size_t kCount = 6;
  for (size_t i = 0; i < kCount; ++i) {
    alice->transport->Send(
        "bob", {"", {Tensor::Full({8 << 20}, static_cast<double>(i))}},
        log.Next());
  }
  EXPECT_EQ(Info(*alice).tensors_sent, kCount);
  alice->transport->Shutdown(milliseconds(30'000));
  for (const absl::Status& status : log.Await(kCount))
    EXPECT_TRUE(status.ok()) << status;
  const auto letters = bob->mailbox.Await(kCount + 1);
  ASSERT_EQ(letters.size(), kCount + 1);
  for (size_t i = 0; i < kCount; ++i) {
    const Tensor& got = letters[i + 1].message.tensors.at(0);
    EXPECT_EQ(got.Slice(0, got.numel() - 1, got.numel()).Item(),
              static_cast<double>(i));
  }
}

TEST_F(TcpWorkers, APeerThatHasItTurnedOffGetsTensorsByTheStreams) {
  const auto alice = NewWorker("alice", 0, Options());
  EXPECT_TRUE(alice->transport->TensorChannels().empty());
  GrpcOptions off = Options();
  off.tcp_tensors = false;
  const auto bob = NewWorker("bob", 1, off);
  alice->Start();
  bob->Start();
  alice->transport->AddPeer(bob->info);
  ASSERT_TRUE(alice->SendTo("bob", {"", {Tensor::Ones({100'000})}}).ok());
  bob->mailbox.Await(1);
  EXPECT_EQ(Info(*alice).why_not, "it offers none");
}

}  // namespace
}  // namespace baton::rpc
