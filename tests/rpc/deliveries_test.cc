// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/deliveries.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace baton::rpc {
namespace {

// Takes messages and keeps nothing of them.
class Taker final : public MessageHandler {
 public:
  void OnMessage(const WorkerInfo&, Message) override { ++taken; }
  void OnPeerLost(const WorkerInfo&, absl::Status) override {}
  int taken = 0;
};

TEST(Deliveries, TheSmallestLimitLetsOneMessageInAfterTheOther) {
  const WorkerInfo bob{"bob", Rank{1}, 2, "127.0.0.1:1"};
  Taker taker;
  const auto gate = std::make_shared<HandlerGate>();
  gate->Open(&taker);
  const auto executor = std::make_shared<ThreadPool>(1, "test-deliver");
  int drained = 0;
  const auto deliveries = std::make_shared<Deliveries>(
      gate, executor, size_t{1}, [&drained] { ++drained; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(deliveries->has_room()) << i;
    deliveries->Push(bob, {"header", {}}, 5);
    EXPECT_FALSE(deliveries->has_room()) << i;
    deliveries->RunHere();
    EXPECT_EQ(taker.taken, i + 1);
    EXPECT_EQ(drained, i + 1);
  }
  gate->Close();
}

TEST(Deliveries, AHeaderForWhichThereIsNoMemoryFailsItsMessageOnly) {
  const WorkerInfo bob{"bob", Rank{1}, 2, "127.0.0.1:1"};
  Taker taker;
  const auto gate = std::make_shared<HandlerGate>();
  gate->Open(&taker);
  const auto deliveries = std::make_shared<Deliveries>(
      gate, std::make_shared<ThreadPool>(1, "test-deliver"), size_t{1} << 20,
      [] {});
  const Tensor endless = Tensor::Zeros({1}, {.dtype = DType::kU8})
                             .Expand({std::numeric_limits<int64_t>::max()});
  absl::Status failure;
  deliveries->PushWithoutHeader(
      bob, {"", {endless}}, 5,
      [&failure](const absl::Status& why) { failure = why; });
  deliveries->Push(bob, {"next", {}}, 5);
  deliveries->RunHere();
  EXPECT_FALSE(failure.ok());
  EXPECT_EQ(taker.taken, 1);
  gate->Close();
}

// Takes messages, each of which holds the number of its thread and its own, and
// frees them at once.
class Counter final : public MessageHandler {
 public:
  static constexpr size_t kThreads = 4;
  void OnMessage(const WorkerInfo&, Message message) override {
    EXPECT_EQ(inside++, 0);
    const size_t thread = static_cast<size_t>(message.header[0] - 'a');
    EXPECT_EQ(message.header.substr(1), std::to_string(next[thread]++));
    message = {};
    --inside;
  }
  void OnPeerLost(const WorkerInfo&, absl::Status) override {}
  std::atomic<int> inside{0};
  std::array<int, kThreads> next{};
};

TEST(Deliveries, ComeOneAtATimeInTheOrderOfEachThreadAndLeaveRoom) {
  constexpr int kMessages = 5000;
  const WorkerInfo bob{"bob", Rank{1}, 2, "127.0.0.1:1"};
  Counter counter;
  const auto gate = std::make_shared<HandlerGate>();
  gate->Open(&counter);
  const auto executor = std::make_shared<ThreadPool>(1, "test-deliver");
  std::atomic<int> drained{0};
  // Little more than one message: most pushes exceed it.
  const auto deliveries = std::make_shared<Deliveries>(
      gate, executor, 2 * kMessageOverhead, [&drained] { ++drained; });
  std::vector<std::thread> threads;
  for (size_t t = 0; t < Counter::kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kMessages; ++i) {
        std::string header(1, static_cast<char>('a' + t));
        deliveries->Push(bob, {header + std::to_string(i), {}},
                         kMessageOverhead);
        t % 2 == 0 ? deliveries->RunHere() : deliveries->Post();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Promise<void> all;
  deliveries->PushTask([all] { all.Set(absl::OkStatus()); });
  deliveries->Post();
  ASSERT_TRUE(all.future().Await().ok());
  for (const int next : counter.next) EXPECT_EQ(next, kMessages);
  EXPECT_TRUE(deliveries->has_room());
  gate->Close();
}

}  // namespace
}  // namespace baton::rpc
