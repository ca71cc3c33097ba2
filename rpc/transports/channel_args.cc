// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/channel_args.h"

#include <grpc/grpc.h>

#include "rpc/transports/framing.h"
#include "rpc/transports/grpc_log.h"

namespace baton::rpc {
namespace {

constexpr int kKeepaliveMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5'000;
constexpr int kHandshakeTimeoutMs = 10'000;
// For a connection without streams. A link's connection has a stream while it
// lasts, and a member asks its rendezvous more often.
constexpr int kConnectionIdleMs = 120'000;
// For one connection. Each stream has a connection of its own, and calls to a
// rendezvous are few.
constexpr int kMaxStreams = 64;

// Keeps gRPC initialized for ever. After its last user gRPC waits for its own
// sockets to close; at times nothing polls for that any more and it waits 10 s.
void KeepGrpc() {
  [[maybe_unused]] static const bool kept = (TakeGrpcLog(), grpc_init(), true);
}

template <typename Set>
void SetBoth(Keepalive keepalive, Set set) {
  KeepGrpc();
  if (keepalive == Keepalive::kOn) {
    set(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  }
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_HTTP2_BDP_PROBE, 1);
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
      static_cast<int>(kMaxGrpcMessageBytes));
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, static_cast<int>(kMaxGrpcMessageBytes));
}

}  // namespace

grpc::ChannelArguments DialArguments(Keepalive keepalive) {
  grpc::ChannelArguments arguments;
  SetBoth(keepalive,
          [&](const char* key, int value) { arguments.SetInt(key, value); });
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Each stream uses a connection of its own, and a new one after a break.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

void SetServerArguments(grpc::ServerBuilder& builder, Keepalive keepalive) {
  SetBoth(keepalive, [&](const char* key, int value) {
    builder.AddChannelArgument(key, value);
  });
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMs / 2);
  // For peers that do not finish a handshake.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             kConnectionIdleMs);
  // Using a port on which another process listens is an error.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace baton::rpc
