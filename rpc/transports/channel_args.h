// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>

namespace baton::rpc {

// Whether gRPC itself checks every 10 s that the other end is still there. With
// many connections this alone keeps a process awake. It is not needed with
// beats, nor on sockets that cannot fall silent.
enum class Keepalive { kOn, kOff };
// Links with a lease have beats.
inline Keepalive KeepaliveOf(std::chrono::milliseconds lease) {
  return lease.count() > 0 ? Keepalive::kOff : Keepalive::kOn;
}

// How gRPC is configured at both ends; docs/transport.md has the measurements.
grpc::ChannelArguments DialArguments(Keepalive keepalive = Keepalive::kOn);
void SetServerArguments(grpc::ServerBuilder& builder,
                        Keepalive keepalive = Keepalive::kOn);

}  // namespace baton::rpc
