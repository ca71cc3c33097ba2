// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "rpc/channels/channel.h"

namespace baton::rpc {

struct TcpOptions {
  // The worker's own host, on which it also listens for tensors, at the port
  // `port` (0 for any free one), and the host that peers are told.
  // Without a host there is no channel.
  std::string listen_host = {};
  uint16_t port = 0;
  std::string told_host = {};
  // Elements travel within TLS if either end sets this.
  bool tls = false;
  // Checks an address before it is dialed, such as "10.0.0.1:5", and returns an
  // error if it must not be. Null allows any.
  std::function<absl::Status(const std::string& address)> check = nullptr;
  // The time within which both ends must have shown their keys.
  std::chrono::milliseconds opening{10'000};
  // When the socket ends, the channel waits so long for the connection to end,
  // which gives the better reason.
  std::chrono::milliseconds grace{500};
};

// Makes the channel of TCP connections of their own, for CPU tensors between
// workers that do not share memory. Only the kernels copy elements: they are
// written from the sender's tensor, which must not change until it has left,
// and read into the receiver's. The two ends show each other the keys of this
// connection, which they were told by gRPC. With TLS they derive from both keys
// what they show and the secret of a TLS 1.3 connection, so that neither key is
// seen on the network. If there can be no channel, the kind offers the reason.
std::shared_ptr<ChannelKind> MakeTcp(const TcpOptions& options);

}  // namespace baton::rpc
