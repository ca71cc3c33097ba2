// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/deliveries.h"

#include <gtest/gtest.h>

#include "rpc/transports/handler_gate.h"

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

}  // namespace
}  // namespace baton::rpc
