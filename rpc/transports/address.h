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
// InvalidArgument names what is wrong with "host:port" or "[ipv6]:port". A host
// has letters, digits, '-', '_' and '.' alone, so that none is a URI.
absl::StatusOr<HostPort> ParseHostPort(const std::string& address);
std::string ToString(const HostPort& address);

// What peers are told of a worker that listens on `listened`: `advertise_host`
// if there is one, else the host, which for a wildcard is this machine's name.
HostPort Advertised(const HostPort& listened,
                    const std::string& advertise_host);

// What to dial to reach `address`, best first. A unix socket counts only if it
// is there and belongs to this user.
std::vector<std::string> DialTargets(const std::string& address);

// InvalidArgument unless each part of `address` is a unix socket or a host and
// a port other than 0.
absl::Status CheckDialable(const std::string& address);
// How gRPC must be told one of DialTargets: it takes "dns:80" for a URI.
std::string GrpcTarget(const std::string& target);

// What is done about a name: the resolver is asked, which may take long, or it
// is taken for another machine's.
enum class Names { kResolve, kRefuse };
// Whether only processes of this machine reach `address`: each part is a unix
// socket, or a host all of whose addresses are loopback ones. A name that the
// resolver does not know is another machine's. What is no address is nobody's,
// so local.
bool IsLocal(const std::string& address, Names names = Names::kResolve);

// OK when it is possible to listen on `address`; else one line that names it
// and says why not. Asked before anything is made that needs the address.
absl::Status CheckListen(const std::string& address);
// What to say when that fails later, for whatever reason.
absl::Status ListenFailure(const std::string& address, const std::string& why);

}  // namespace baton::rpc
