// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>

namespace baton::rpc {

// Sends the log lines of gRPC and protobuf to the log of this process. Failed
// TLS handshakes become warnings, at most one a second, since unauthenticated
// peers can cause many. All other lines are for debugging, because users get
// those errors as statuses. Idempotent. Thread-safe.
void TakeGrpcLog();

// Makes malloc keep up to 256 MB of freed memory, for the whole process from
// the first call on. Otherwise the buffers that gRPC reads into would be
// returned to the system and faulted in again for each chunk of a tensor, which
// takes longer than reading it. Does nothing if the environment configures
// malloc (GLIBC_TUNABLES, MALLOC_...), or with another malloc than glibc's.
// Thread-safe.
void KeepFreedMemory();

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
