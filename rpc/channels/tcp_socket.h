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

// Sockets between machines, on which each end shows the other one a key that it
// was told by other means. Reads and writes never block.
namespace baton::rpc {

inline constexpr size_t kTcpKeyBytes = 16;
// The most bytes of one read or write, for which the end of a connection waits.
inline constexpr size_t kTcpMostAtOnce = size_t{4} << 20;

// What each end of a connection has to show.
struct TcpKeys {
  std::string ours;    // is shown to this one
  std::string theirs;  // is what this one shows
};

// Listens on all addresses of the host that are available, with one port (0 for
// any free one). A wildcard stands for those of IPv4 and IPv6. Unavailable
// gives the reason.
absl::StatusOr<std::vector<Fd>> ListenTcp(const std::string& host,
                                          uint16_t port);
absl::StatusOr<uint16_t> PortOf(const Fd& socket);

// The addresses of a host, with the port.
using TcpAddresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
// FindTcp asks the resolver, which may take long, unless the host is an
// address. The variant for at once returns nothing for a name. Unavailable
// names a host that has no address.
absl::StatusOr<TcpAddresses> FindTcp(const std::string& host, uint16_t port);
absl::StatusOr<TcpAddresses> FindTcpAtOnce(const std::string& host,
                                           uint16_t port);
// For example "10.0.0.1:5" or "[::1]:5".
std::string ToText(const addrinfo& address);

// Sets the options that both ends need on a new connection.
void SetUpTcp(const Fd& socket);

}  // namespace baton::rpc
