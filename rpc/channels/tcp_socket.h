// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/channels/segment.h"

// Sockets between machines on which each end shows the other a key that it was
// told by other means. They never block whoever reads or writes them.
namespace baton::rpc {

inline constexpr size_t kTcpKeyBytes = 16;
// What one read or write moves at most: who ends the connection waits for it.
inline constexpr size_t kTcpMostAtOnce = size_t{4} << 20;

// What each end of a connection has to show.
struct TcpKeys {
  std::string ours;    // is shown to this one
  std::string theirs;  // is what this one shows
};

// Port 0: any free one. Unavailable names what cannot be listened on.
absl::StatusOr<Fd> ListenTcp(const std::string& host, uint16_t port);
absl::StatusOr<uint16_t> PortOf(const Fd& socket);

// A connection whose other end has shown its key. Waits for that, `limit` at
// most and while `wanted` says so. Unavailable where nobody is there,
// PermissionDenied where it is somebody else.
absl::StatusOr<Fd> DialTcp(const std::string& host, uint16_t port,
                           const TcpKeys& keys, std::chrono::milliseconds limit,
                           const std::function<bool()>& wanted);

// What has been accepted becomes as what was dialed.
void SetUpTcp(const Fd& socket);

}  // namespace baton::rpc
