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
#include "rpc/channels/segment.h"
#include "rpc/channels/socket_poller.h"
#include "rpc/channels/unauthenticated_peers.h"

namespace baton::rpc {

// Accepts the connections of a gRPC server. gRPC itself would accept any number
// of them, keep those that say nothing, and accept no more for good once there
// was no descriptor left for one (1.51). Here who came by TCP and was not let
// in is one of 1,024 at most, of whom the oldest goes for the next, and is cut
// off after a time. On Unix sockets, which only this user reaches, nobody is
// counted. Thread-safe.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  // `time` is how long who came may take until it is let in.
  explicit Acceptor(std::chrono::milliseconds time);

  // Before `builder` makes the server: it serves who connects to `address`,
  // "host:port" (port 0: any free one) or "unix:path", which gets mode 0600.
  // Gives the port, 0 for a path. Unavailable in one line that names the
  // address.
  absl::StatusOr<uint16_t> Listen(
      grpc::ServerBuilder& builder, const std::string& address,
      const std::shared_ptr<grpc::ServerCredentials>& credentials);
  // Once the server is there.
  absl::Status Start();
  // The last call, before the server shuts down. Cuts off unauthenticated peers
  // and removes socket paths.
  void Stop();

  // Who comes from `peer`, as gRPC names it, has shown that it may.
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
      std::make_shared<SocketPoller>("baton-accept");
  const std::shared_ptr<UnauthenticatedPeers> unauthenticated_;
  std::vector<Place> places_;  // constant from Start on
};

}  // namespace baton::rpc
