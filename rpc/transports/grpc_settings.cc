// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/grpc_settings.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/log.h"
#include "rpc/transports/framing.h"

namespace baton::rpc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kQuiet = std::chrono::seconds(1);

// Returns true, and counts a warning, if the last one is long enough ago.
bool MayWarn() {
  static std::atomic<Clock::rep> next{0};
  const Clock::rep now = Clock::now().time_since_epoch().count();
  Clock::rep due = next;
  return now >= due && next.compare_exchange_strong(
                           due, now + Clock::duration(kQuiet).count());
}

// The last part of "Handshake failed with ...: error:...:SSL routines::REASON."
absl::string_view ReasonIn(absl::string_view text) {
  const size_t at = text.rfind("::");
  return absl::StripSuffix(
      at == absl::string_view::npos ? text : text.substr(at + 2), ".");
}

// What a reader can do about it who does not know which peer was refused.
const char* Remedy(absl::string_view reason) {
  if (absl::StrContains(reason, "wrong version number"))
    return ": somebody talks in clear to a worker that wants TLS";
  if (absl::StrContains(reason, "certificate verify failed"))
    return ": the other side's certificate has expired or is not of the "
           "authority in --tls_ca";
  return "";
}

// Protobuf logs each string that is not UTF-8, and any peer can send such.
void TakeProtobufs(google::protobuf::LogLevel, const char*, int,
                   const std::string& text) {
  LogDebug("protobuf: ", text);
}

void Take(gpr_log_func_args* line) {
  const absl::string_view text = line->message;
  if (absl::StartsWith(text, "Handshake failed") && MayWarn()) {
    const absl::string_view reason = ReasonIn(text);
    LogWarning("a TLS handshake failed: ", reason, Remedy(reason));
  } else {
    LogDebug("gRPC: ", text);
  }
}

}  // namespace

void TakeGrpcLog() {
  gpr_set_log_function(&Take);
  google::protobuf::SetLogHandler(&TakeProtobufs);
}

namespace {

#if defined(__GLIBC__)
bool EnvironmentDecides() {
  for (const char* name : {"GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_",
                           "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}
#endif

}  // namespace

void KeepFreedMemory() {
#if defined(__GLIBC__)
  // Larger blocks are returned at once; gRPC's have at most 4 MB.
  static const bool done = !EnvironmentDecides() &&
                           mallopt(M_MMAP_THRESHOLD, 8 << 20) == 1 &&
                           mallopt(M_TRIM_THRESHOLD, 256 << 20) == 1;
  (void)done;
#endif
}

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
