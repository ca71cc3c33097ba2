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
  // Where to listen, as the worker itself does, on a port for tensors alone
  // (0: any free one), and the host that others are told. Without a host to
  // listen on there is no channel.
  std::string listen_host = {};
  uint16_t port = 0;
  std::string told_host = {};
  // Elements travel within TLS, unless neither end asks for it.
  bool tls = false;
  // Of an address that is to be dialed, "10.0.0.1:5": an error says why it must
  // not be. Null: any may.
  std::function<absl::Status(const std::string& address)> check = nullptr;
  // How long a connection may take until both have shown their keys.
  std::chrono::milliseconds opening{10'000};
  // How long the end of a socket waits for that of the connection, which says
  // better why.
  std::chrono::milliseconds grace{500};
};

// A TCP connection of its own, for tensors of the CPU between workers that do
// not share memory. Nothing is copied but by the kernels: elements are written
// from where the sender has them, who may not change them before they have
// left, and read to where they stay. The two ends have shown each other the key
// of this connection, which they were told by gRPC; with TLS they derive the
// secret of a TLS 1.3 connection from both keys, and what they show, so that
// neither key is seen on the network. If the channel cannot be had, the kind
// offers the reason.
std::shared_ptr<ChannelKind> MakeTcp(const TcpOptions& options);

}  // namespace baton::rpc
