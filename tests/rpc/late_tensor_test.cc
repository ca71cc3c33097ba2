// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "rpc/channels/shared_memory.h"
#include "rpc/transports/link.h"
#include "rpc/transports/private_socket.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/rpc/tcp_ends.h"
#include "tests/rpc/transport_worker.h"

// Tensors that may not be used when their message comes, over a connection.
namespace baton::rpc {
namespace {

// Those that came by another channel, each of which may be used when the test
// says so. Thread-safe.
class Customs {
 public:
  Imported Keep(const Imported& imported) {
    MutexLock lock(mutex_);
    kept_.emplace_back();
    changed_.NotifyAll();
    return {imported.tensor, kept_.back().future()};
  }
  // The n-th, once it is there.
  void Pass(size_t n) {
    std::optional<Promise<void>> promise;
    {
      const auto deadline = std::chrono::steady_clock::now() + kPatience;
      MutexLock lock(mutex_);
      while (kept_.size() <= n && changed_.WaitUntil(mutex_, deadline)) {
      }
      ASSERT_GT(kept_.size(), n);
      promise = kept_[n];
    }
    promise->Set(absl::OkStatus());
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Promise<void>> kept_ ABSL_GUARDED_BY(mutex_);
};

class LateChannel final : public Channel {
 public:
  LateChannel(std::shared_ptr<Channel> channel, Customs& customs)
      : channel_(std::move(channel)), customs_(customs) {}
  void Start() override { channel_->Start(); }
  void OnControl(std::string payload) override { channel_->OnControl(payload); }
  std::optional<Ticket> Export(const Tensor& tensor) override {
    return channel_->Export(tensor);
  }
  void Withdraw(uint64_t lease) override { channel_->Withdraw(lease); }
  absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                  const std::string& ticket) override {
    auto imported = channel_->Import(spec, ticket);
    // Large ones alone.
    if (!imported.ok() || spec.bytes < 1'000'000) return imported;
    return customs_.Keep(*imported);
  }
  absl::Status OnReleased(uint64_t lease) override {
    return channel_->OnReleased(lease);
  }
  void OnLost() override { channel_->OnLost(); }
  TensorChannelInfo info() const override { return channel_->info(); }

 private:
  const std::shared_ptr<Channel> channel_;
  Customs& customs_;
};

class LateKind final : public ChannelKind {
 public:
  LateKind(std::shared_ptr<ChannelKind> kind, Customs& customs)
      : kind_(std::move(kind)), customs_(customs) {}
  uint32_t id() const override { return kind_->id(); }
  std::string name() const override { return kind_->name(); }
  absl::StatusOr<std::string> Offer() override { return kind_->Offer(); }
  absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends& ends, std::shared_ptr<ChannelPort> port) override {
    auto channel = kind_->Open(ends, std::move(port));
    if (!channel.ok()) return channel.status();
    return std::make_shared<LateChannel>(*std::move(channel), customs_);
  }

 private:
  const std::shared_ptr<ChannelKind> kind_;
  Customs& customs_;
};

// Bob sends to alice, who is a link.
class LateTensor : public ::testing::Test {
 protected:
  explicit LateTensor(bool by_tcp = false)
      : by_tcp_(by_tcp),
        bob_(NewWorker("bob", 1, {.shared_memory = !by_tcp})) {}
  void SetUp() override {
    host_.self = {"alice", Rank{0}, 1, "127.0.0.1:1"};
    host_.executor = std::make_shared<ThreadPool>(1, "test-link");
    host_.timer = std::make_unique<Timer>("test-dial");
    host_.gate->Open(&mailbox_);
    host_.options.max_undelivered_bytes = 50'000;
    host_.kinds = {std::make_shared<LateKind>(
        by_tcp_ ? MakeTcp(OnLoopback())
                : MakeSharedMemory({.socket_path = socket_.fd_path()}),
        customs_)};
    bob_->Start();
    bob_->transport->AddPeer(host_.self);
    link_ = Link::Make(host_, bob_->info);
    auto sent = log_.Next();
    auto message = Outgoing::Make({"hello", {}}, 1000, sent, host_.executor);
    ASSERT_TRUE(message.ok());
    link_->Send(*std::move(message));
    ASSERT_TRUE(log_.Await(1).back().ok()) << log_.Await(1).back();
    ASSERT_TRUE(bob_->AwaitChannel(by_tcp_ ? "TCP" : "shared memory"));
    // Until there is room for tensors that large.
    for (bool by_channel = false; !by_channel;) {
      const uint64_t before = SentByChannel();
      ASSERT_TRUE(bob_->SendTo("alice", {"room", {Large(0)}}).ok());
      by_channel = SentByChannel() > before;
      if (by_channel) customs_.Pass(0);
      mailbox_.Await(++letters_);
    }
  }
  ~LateTensor() override {
    if (link_ != nullptr) link_->Close(absl::CancelledError("the test ends"));
    host_.streams.AwaitNone();
    host_.gate->Close();
  }

  static Tensor Large(double value) { return Tensor::Full({500'000}, value); }
  uint64_t SentByChannel() {
    return bob_->transport->TensorChannels().at(0).tensors_sent;
  }
  Message Next() {
    const size_t at = letters_++;
    return mailbox_.Await(letters_).at(at).message;
  }

  Customs customs_;
  PrivateSocket socket_ = *PrivateSocket::Make();
  Mailbox mailbox_;
  size_t letters_ = 0;
  const bool by_tcp_;
  const std::unique_ptr<TestWorker> bob_;
  SentLog log_;
  LinkHost host_;
  std::shared_ptr<Link> link_;
};

TEST_F(LateTensor, HoldsBackItsMessageAlone) {
  const Tensor large = Large(3), medium = Tensor::Full({5000}, 2),
               small = Tensor::Ones({3});
  ASSERT_TRUE(bob_->SendTo("alice", {"late", {large, medium, small}}).ok());
  ASSERT_TRUE(bob_->SendTo("alice", {"small", {small}}).ok());
  EXPECT_EQ(Next().header, "small");
  customs_.Pass(1);
  const Message late = Next();
  EXPECT_EQ(late.header, "late");
  ASSERT_EQ(late.tensors.size(), 3u);
  EXPECT_EQ(late.tensors[0].ToVector<float>(), large.ToVector<float>());
  EXPECT_EQ(late.tensors[1].ToVector<float>(), medium.ToVector<float>());
  EXPECT_EQ(late.tensors[2].ToVector<float>(), small.ToVector<float>());
  EXPECT_EQ(host_.streams.count(), 1);
}

TEST_F(LateTensor, OfALostConnectionIsNotDelivered) {
  ASSERT_TRUE(bob_->SendTo("alice", {"late", {Large(3)}}).ok());
  ASSERT_TRUE(bob_->SendTo("alice", {"small", {}}).ok());
  EXPECT_EQ(Next().header, "small");
  link_->Sever(absl::UnavailableError("it broke"), nullptr);
  EXPECT_EQ(mailbox_.AwaitLost(1).size(), 1u);
  customs_.Pass(1);
  ASSERT_TRUE(bob_->mailbox.AwaitLost(1).size() == 1);
  EXPECT_EQ(mailbox_.count(), letters_);
}

// What they wait for would not be read either.
TEST_F(LateTensor, SmallMessagesAreReadHoweverMuchIsHeld) {
  for (int i = 0; i < 5; ++i) {
    bob_->transport->Send("alice", InChunks("late", {Large(i)}), nullptr);
  }
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(bob_->SendTo("alice", {"small", {}}).ok());
    EXPECT_EQ(Next().header, "small");
  }
  for (size_t i = 0; i < 5; ++i) {
    customs_.Pass(1 + i);
    const Message late = Next();
    EXPECT_EQ(late.header, "late");
    EXPECT_EQ(late.tensors.at(0).Slice(0, 0, 1).Item(), static_cast<double>(i));
  }
}

TEST_F(LateTensor, LargeMessagesAreNotSentWhileTooMuchIsHeld) {
  const uint64_t before = link_->channel().messages_received;
  ASSERT_TRUE(bob_->SendTo("alice", InChunks("x", {Large(3)})).ok());
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (link_->channel().messages_received == before) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
  // Bob has been asked to pause by the time he gets this.
  auto sent = log_.Next();
  auto answer = Outgoing::Make({"it is held", {}}, 1000, sent, host_.executor);
  ASSERT_TRUE(answer.ok());
  link_->Send(*std::move(answer));
  ASSERT_EQ(bob_->mailbox.Await(2).at(1).message.header, "it is held");
  bob_->transport->Send("alice", InChunks("y"), nullptr);
  for (int i = 0; i < 20; ++i) {
    // Each fills what may be undelivered, and leaves it again.
    ASSERT_TRUE(bob_->SendTo("alice", {std::string(60'000, 's'), {}}).ok());
    EXPECT_EQ(Next().header.substr(0, 1), "s");
  }
  customs_.Pass(1);
  EXPECT_EQ(Next().header, "x");
  EXPECT_EQ(Next().header, "y");
}

TEST_F(LateTensor, WhatCameByAChannelIsNotHeldAgainstTheStream) {
  const Tensor other = Tensor::Ones({200'000});  // not late, by shared memory
  const uint64_t before = SentByChannel();
  ASSERT_TRUE(bob_->SendTo("alice", {"late", {Large(3), other}}).ok());
  EXPECT_EQ(SentByChannel(), before + 2);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(bob_->SendTo("alice", InChunks("y")).ok());
    EXPECT_EQ(Next().header, "y");
  }
  customs_.Pass(1);
  EXPECT_EQ(Next().header, "late");
}

// Where no memory shows that the other one is alive.
class LateTensorByTcp : public LateTensor {
 protected:
  LateTensorByTcp() : LateTensor(true) { host_.options.lease = kLease; }
  static constexpr std::chrono::milliseconds kLease{1000};
};

TEST_F(LateTensorByTcp, IsWaitedForAfterAGoodbye) {
  ASSERT_TRUE(bob_->SendTo("alice", {"late", {Large(3)}}).ok());
  std::thread shutdown([this] { bob_->transport->Shutdown(kPatience); });
  EXPECT_TRUE(mailbox_.NobodyLostFor(2 * kLease));
  customs_.Pass(1);
  EXPECT_EQ(Next().header, "late");
  shutdown.join();
}

}  // namespace
}  // namespace baton::rpc
