// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Addresses of workers: "host:port", "unix:path", or both as
// "host:port;unix:path" for a worker that can be reached either way.
namespace baton::rpc {

struct HostPort {
  std::string host;
  uint16_t port = 0;
};
// Returns InvalidArgument, naming the mistake, unless `address` is "host:port"
// or "[ipv6]:port". A host may have only letters, digits, '-', '_' and '.', so
// that none is a URI.
absl::StatusOr<HostPort> ParseHostPort(const std::string& address);
std::string ToString(const HostPort& address);

// The address that peers are told for a worker that listens on `listened`. The
// host is `advertise_host` unless it is empty, or else the one listened on,
// which for a wildcard is replaced by this machine's name.
HostPort Advertised(const HostPort& listened,
                    const std::string& advertise_host);

// Returns the targets to dial to reach `address`, best first. A unix socket is
// included only if it exists and belongs to this user.
std::vector<std::string> DialTargets(const std::string& address);

// InvalidArgument unless each part of `address` is a unix socket or a host and
// a port other than 0.
absl::Status CheckDialable(const std::string& address);
// Returns gRPC's notation of one of DialTargets; gRPC takes "dns:80" for a URI.
std::string GrpcTarget(const std::string& target);

// How to treat a host name: ask the resolver, which may take long, or assume
// that it is another machine's.
enum class Names { kResolve, kRefuse };
// Whether only processes of this machine can reach `address`: each part is a
// unix socket, or a host all of whose addresses are loopback addresses. A name
// that the resolver does not know counts as another machine's. Text that is not
// an address counts as local.
bool IsLocal(const std::string& address, Names names = Names::kResolve);

// Returns OK if it is possible to listen on `address`, or else one line that
// names it and the reason. To be called before anything that needs the address.
absl::Status CheckListen(const std::string& address);
// Returns the error to report if listening fails later, for whatever reason.
absl::Status ListenFailure(const std::string& address, const std::string& why);

}  // namespace baton::rpc
