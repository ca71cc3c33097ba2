// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/grpc_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <atomic>
#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/log.h"

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

}  // namespace baton::rpc
