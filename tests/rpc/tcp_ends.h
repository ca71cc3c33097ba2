// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/future.h"
#include "rpc/channels/dense_view.h"
#include "rpc/channels/tcp.h"
#include "tests/rpc/test_port.h"

// Two ends of the channel, whose words are passed on by the test.
namespace baton::rpc {

inline TcpOptions OnLoopback() {
  return {.listen_host = "127.0.0.1",
          .told_host = "127.0.0.1",
          .clear = true,
          .grace = std::chrono::milliseconds(20)};
}

struct TcpSide {
  explicit TcpSide(const TcpOptions& options) : kind(MakeTcp(options)) {}
  std::shared_ptr<ChannelKind> kind;
  std::shared_ptr<TestPort> port = std::make_shared<TestPort>();
  std::shared_ptr<Channel> channel;
};

class TcpTest : public testing::Test {
 protected:
  static constexpr auto kSoon = TestPort::kLimit;
  // What both kernels cannot hold.
  static constexpr int64_t kMuch = int64_t{256} << 20;

  explicit TcpTest(const TcpOptions& options = OnLoopback())
      : alice_(options), bob_(options) {}
  ~TcpTest() override { Lose(); }

  static bool Within(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  static size_t Descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  static Tensor Bytes(int64_t count, int value) {
    return Tensor::Full({count}, value, {.dtype = DType::kU8});
  }
  static bool Equal(const Tensor& a, const Tensor& b) {
    const Tensor x = a.Contiguous(), y = b.Contiguous();
    return x.nbytes() == y.nbytes() &&
           std::memcmp(x.raw_data(), y.raw_data(), x.nbytes()) == 0;
  }

  // Alice dials; `alter` may change what she hears of bob's offer.
  using Alter = std::function<std::string(const std::string&)>;
  void Connect(const Alter& alter = nullptr) {
    const std::string alices = *alice_.kind->Offer(),
                      bobs = *bob_.kind->Offer();
    alice_.port = std::make_shared<TestPort>();
    bob_.port = std::make_shared<TestPort>();
    bob_.channel = *bob_.kind->Open({false, bobs, alices}, bob_.port);
    alice_.channel = *alice_.kind->Open(
        {true, alices, alter ? alter(bobs) : bobs}, alice_.port);
    alice_.port->Connect(bob_.channel);
    bob_.port->Connect(alice_.channel);
    alice_.channel->Start();
  }
  void Open() {
    Connect();
    ASSERT_EQ(alice_.port->AwaitSettled(), "open");
    ASSERT_EQ(bob_.port->AwaitSettled(), "open");
  }
  void Lose() {
    for (TcpSide* side : {&alice_, &bob_}) {
      if (side->channel != nullptr) side->channel->OnLost();
    }
  }

  struct Sent {
    Ticket ticket;
    Future<void> left;
  };
  static Sent Send(const TcpSide& from, const Tensor& tensor) {
    const auto ticket = from.channel->Export(tensor);
    EXPECT_TRUE(ticket.has_value());
    if (!ticket.has_value()) return {};
    return {*ticket, from.channel->Send(ticket->lease)};
  }
  static absl::StatusOr<Imported> Import(const TcpSide& to,
                                         const Tensor& tensor,
                                         const Ticket& ticket) {
    return to.channel->Import(SpecOf(tensor), ticket.ticket);
  }
  // What came of it.
  static Tensor Transfer(const TcpSide& from, const TcpSide& to,
                         const Tensor& tensor) {
    const Sent sent = Send(from, tensor);
    const auto imported = Import(to, tensor, sent.ticket);
    EXPECT_TRUE(imported.ok()) << imported.status();
    if (!imported.ok()) return {};
    EXPECT_TRUE(imported->given.Await(kSoon).ok());
    EXPECT_TRUE(sent.left.Await(kSoon).ok());
    return imported->tensor;
  }

  TcpSide alice_, bob_;
};

}  // namespace baton::rpc
