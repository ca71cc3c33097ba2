// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <netdb.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

// On all addresses of the host that can be had, with one port; 0: any free one.
// A wildcard stands for those of IPv4 and IPv6. Unavailable says why there is
// none.
absl::StatusOr<std::vector<Fd>> ListenTcp(const std::string& host,
                                          uint16_t port);
absl::StatusOr<uint16_t> PortOf(const Fd& socket);

// Those of a host, with the port.
using TcpAddresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
// What the resolver is asked, which may take long, or, for an address, not. At
// once: nothing for a name. Unavailable names a host that there is none of.
absl::StatusOr<TcpAddresses> FindTcp(const std::string& host, uint16_t port);
absl::StatusOr<TcpAddresses> FindTcpAtOnce(const std::string& host,
                                           uint16_t port);
// "10.0.0.1:5", "[::1]:5".
std::string ToText(const addrinfo& address);

// What both ends do with a new connection.
void SetUpTcp(const Fd& socket);

}  // namespace baton::rpc
