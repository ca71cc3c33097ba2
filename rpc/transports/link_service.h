// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <functional>
#include <memory>

#include "rpc/transports/acceptor.h"
#include "rpc/transports/grpc_stream.h"
#include "rpc/transports/hello.h"
#include "rpc/transports/link.h"

namespace baton::rpc {

// Accepts streams of unauthenticated peers, each until it has sent a hello.
// Streams that come before Open wait for it. Thread-safe.
class LinkService final : public grpc::CallbackGenericService {
 public:
  // Handles a stream that has sent its hello. Returns false if it was refused.
  using Admit =
      std::function<bool(const std::shared_ptr<GrpcStream>&, const Hello&)>;

  // `host` must outlive the service; `acceptor` owns the connections. `links`
  // returns how many workers may have streams. Further unauthenticated peers
  // are rejected, as is every new stream when few descriptors are left.
  LinkService(LinkHost& host, std::shared_ptr<Acceptor> acceptor,
              std::function<size_t()> links, Admit admit);

  void Open();
  // Ends the streams that still wait. `admit` answers those that come later.
  void Close();

 private:
  class Lobby;
  class Guest;

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
  grpc::Status CheckRoom(const std::string& peer);

  LinkHost& host_;
  const std::shared_ptr<Acceptor> acceptor_;
  const std::function<size_t()> links_;
  const Admit admit_;
  const std::shared_ptr<Lobby> lobby_;
};

}  // namespace baton::rpc
