// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "rpc/channels/dense_view.h"
#include "rpc/channels/shared_memory.h"
#include "rpc/transports/private_socket.h"
#include "tests/rpc/test_port.h"

namespace baton::rpc {

struct SharedMemoryTestEnd {
  explicit SharedMemoryTestEnd(size_t budget)
      : socket(*PrivateSocket::Make()),
        kind(MakeSharedMemory(
            {.socket_path = socket.fd_path(), .bytes_per_peer = budget})) {}
  PrivateSocket socket;
  std::shared_ptr<ChannelKind> kind;
  std::shared_ptr<TestPort> port = std::make_shared<TestPort>();
  std::shared_ptr<Channel> channel;
};

// Two ends of the channel, whose words are passed on by the test.
class SharedMemoryPair : public testing::Test {
 protected:
  static constexpr size_t kBudget = size_t{40} << 20;
  static constexpr std::chrono::seconds kPatience{30};

  // `alter` may change what alice hears of bob's offer.
  void Connect(const std::function<std::string(std::string)>& alter = nullptr) {
    const std::string alices = *alice_.kind->Offer();
    const std::string bobs = *bob_.kind->Offer();
    alice_.channel = *alice_.kind->Open(
        {true, alices, alter ? alter(bobs) : bobs}, alice_.port);
    bob_.channel = *bob_.kind->Open({false, bobs, alices}, bob_.port);
    alice_.port->Connect(bob_.channel);
    bob_.port->Connect(alice_.channel);
    alice_.channel->Start();
  }
  void Open() {
    Connect();
    ASSERT_EQ(alice_.port->AwaitSettled(), "open");
    ASSERT_EQ(bob_.port->AwaitSettled(), "open");
  }
  // Once there is room for it.
  Ticket Export(const Tensor& tensor) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      if (auto ticket = alice_.channel->Export(tensor)) return *ticket;
      if (std::chrono::steady_clock::now() > deadline) break;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "no room for " << tensor.nbytes() << " bytes";
    return {};
  }
  Tensor Send(const Tensor& tensor) {
    auto got = bob_.channel->Import(SpecOf(tensor), Export(tensor).ticket);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? got->tensor : Tensor();
  }
  // Leases that bob gave back reach alice.
  void PassReleases() {
    for (const uint64_t lease : bob_.port->TakeReleased()) {
      EXPECT_TRUE(alice_.channel->OnReleased(lease).ok());
    }
  }

  using End = SharedMemoryTestEnd;
  End alice_{kBudget}, bob_{kBudget};
};

}  // namespace baton::rpc
