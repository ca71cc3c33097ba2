// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "tests/rpc/test_port.h"
#include "tests/support/within.h"

// Two ends of a channel, whose words are passed on by the test.
namespace baton::rpc {

// One end, and what makes it; Side in what follows is one of these.
struct ChannelSide {
  std::shared_ptr<ChannelKind> kind = nullptr;
  std::shared_ptr<TestPort> port = std::make_shared<TestPort>();
  std::shared_ptr<Channel> channel = nullptr;
};

template <typename Side>
class TwoEnds : public ::testing::Test {
 protected:
  static constexpr auto kSoon = TestPort::kLimit;

  TwoEnds(Side alice, Side bob)
      : alice_(std::move(alice)), bob_(std::move(bob)) {}

  static bool Within(const std::function<bool()>& done) {
    return baton::testing::Within(kSoon, done);
  }
  // Of any strides, where the CPU can read both.
  static bool Equal(const Tensor& a, const Tensor& b) {
    const auto dense = [](const Tensor& each) {
      return each.IsContiguous() ? each : each.Contiguous();
    };
    const Tensor x = dense(a), y = dense(b);
    return x.nbytes() == y.nbytes() &&
           std::memcmp(x.raw_data(), y.raw_data(), x.nbytes()) == 0;
  }

  // A new connection, which alice dials; `alter` may change what she hears of
  // bob's offer.
  using Alter = std::function<std::string(const std::string&)>;
  void Connect(const Alter& alter = nullptr) {
    const std::string alices = Offer(alice_, "a"), bobs = Offer(bob_, "b");
    for (Side* side : {&alice_, &bob_})
      side->port = std::make_shared<TestPort>();
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
    for (Side* side : {&alice_, &bob_}) {
      if (side->channel != nullptr) side->channel->OnLost();
    }
  }
  // By alice, once there is room for it.
  Ticket Export(const Tensor& tensor) {
    std::optional<Ticket> ticket;
    EXPECT_TRUE(Within([&] {
      ticket = alice_.channel->Export(tensor);
      return ticket.has_value();
    })) << tensor.nbytes()
        << " bytes are not taken: " << alice_.channel->info().why_not;
    return ticket.value_or(Ticket{});
  }

  Side alice_, bob_;

 private:
  // As that process would.
  virtual std::string Offer(Side& side, const std::string&) {
    return *side.kind->Offer();
  }
};

}  // namespace baton::rpc
