// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>

namespace baton::rpc {

// Whether gRPC itself looks, every 10 s, if the other end is still there. With
// many connections that alone keeps a process awake; beats, and sockets that
// cannot fall silent, make it needless.
enum class Keepalive { kOn, kOff };
// Beats come on links with a lease.
inline Keepalive KeepaliveOf(std::chrono::milliseconds lease) {
  return lease.count() > 0 ? Keepalive::kOff : Keepalive::kOn;
}

// How gRPC is set up on both ends; docs/transport.md says what was measured.
grpc::ChannelArguments DialArguments(Keepalive keepalive = Keepalive::kOn);
void SetServerArguments(grpc::ServerBuilder& builder,
                        Keepalive keepalive = Keepalive::kOn);

}  // namespace baton::rpc
