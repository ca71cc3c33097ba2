// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/channels/accepting.h"
#include "rpc/channels/segment.h"
#include "rpc/channels/socket_poller.h"
#include "rpc/security.h"

namespace baton::rpc {

// Accepts the connections of a gRPC server. gRPC itself (1.51) would accept any
// number, keep silent ones, and stop accepting for good once no descriptor was
// left. Here at most 1,024 TCP connections may be unauthenticated; a further
// one replaces the oldest, and each is closed after a time. Connections on Unix
// sockets, which only this user can open, are not limited. Thread-safe.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  // `time` is how long a connection may stay unauthenticated.
  explicit Acceptor(std::chrono::milliseconds time);

  // Must be called before `builder` makes the server, which then serves
  // connections to `address` with the credentials that `security` demands
  // there: "host:port" (port 0 for any free one) or "unix:path", which gets
  // mode 0600. Returns the port, 0 for a path, or Unavailable in one line that
  // names the address.
  absl::StatusOr<uint16_t> Listen(grpc::ServerBuilder& builder,
                                  const std::string& address,
                                  const Security& security);
  // Must be called once the server exists.
  absl::Status Start();
  // The last call, before the server shuts down. Closes the connections of
  // unauthenticated peers and removes socket paths.
  void Stop();

  // Reports that `peer`, as gRPC names it, has authenticated itself.
  void LetIn(const std::string& peer);
  // Returns whether `peer` may open a stream; an unauthenticated peer may open
  // one.
  bool MayOpen(const std::string& peer);

 private:
  using GrpcAcceptor = grpc::experimental::ExternalConnectionAcceptor;
  struct Place {
    std::shared_ptr<const Fd> socket;
    std::shared_ptr<GrpcAcceptor> server;
    std::string path;  // of a Unix socket
  };
  void TakeIn(const Place& place, Fd socket);

  const std::shared_ptr<SocketPoller> poller_ =
      SocketPoller::Make("baton-accept");
  const std::shared_ptr<UnauthenticatedPeers> unauthenticated_;
  std::vector<Place> places_;  // constant from Start on
};

}  // namespace baton::rpc
