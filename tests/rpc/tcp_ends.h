// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <filesystem>
#include <iterator>

#include "core/future.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/tcp.h"
#include "tests/rpc/two_ends.h"

// Two ends of the channel.
namespace baton::rpc {

inline TcpOptions OnLoopback(bool tls = false) {
  return {.listen_host = "127.0.0.1",
          .told_host = "127.0.0.1",
          .tls = tls,
          .grace = std::chrono::milliseconds(20)};
}

struct TcpSide : ChannelSide {
  explicit TcpSide(const TcpOptions& options) { kind = MakeTcp(options); }
};

class TcpTest : public TwoEnds<TcpSide> {
 protected:
  // What both kernels cannot hold.
  static constexpr int64_t kMuch = int64_t{64} << 20;

  explicit TcpTest(const TcpOptions& options = OnLoopback())
      : TwoEnds(TcpSide(options), TcpSide(options)) {}
  ~TcpTest() override { Lose(); }

  static size_t Descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  static Tensor Bytes(int64_t count, int value) {
    return Tensor::Full({count}, value, {.dtype = DType::kU8});
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
};

// What must be so in clear and within TLS; the parameter asks for TLS.
class TcpWays : public TcpTest, public ::testing::WithParamInterface<bool> {
 protected:
  TcpWays() : TcpTest(OnLoopback(GetParam())) {}
};

}  // namespace baton::rpc
