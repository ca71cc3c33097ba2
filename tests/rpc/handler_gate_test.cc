// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "rpc/transports/deliveries.h"

namespace baton::rpc {
namespace {

class Nobody final : public MessageHandler {
 public:
  void OnMessage(const WorkerInfo&, Message) override {}
  void OnPeerLost(const WorkerInfo&, absl::Status) override {}
};

TEST(HandlerGate, NoCallIsUnderWayOnceItIsClosed) {
  Nobody nobody;
  int passed = 0;
  for (int round = 0; round < 200; ++round) {
    HandlerGate gate;
    gate.Open(&nobody);
    std::atomic<bool> closed{false}, done{false};
    std::atomic<int> calls{0}, late{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!done) {
          gate.Pass([&](MessageHandler& handler) {
            EXPECT_EQ(&handler, &nobody);
            ++calls;
            std::this_thread::yield();
            late += closed;
          });
        }
      });
    }
    while (calls == 0) std::this_thread::yield();
    gate.Close();
    closed = true;
    done = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(late, 0);
    passed += calls;
  }
  EXPECT_GE(passed, 200);
}

}  // namespace
}  // namespace baton::rpc
