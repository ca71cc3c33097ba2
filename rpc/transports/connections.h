// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/newest_map.h"
#include "rpc/transports/acceptor.h"
#include "rpc/transports/grpc_stream.h"
#include "rpc/transports/link.h"

namespace baton::rpc {

// The part of a transport that may outlast it: its links, and the service that
// accepts streams. gRPC ends a stream only when the socket has accepted or
// refused what was written to it. While the peer is stopped, its socket may do
// neither. Thread-safe, once the server has started.
struct Connections final : grpc::CallbackGenericService {
  enum class State { kNew, kStarted, kShutDown };

  explicit Connections(const GrpcOptions& options);
  std::shared_ptr<Link> FindOrMakeLocked(const WorkerInfo& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Streams that come while the state is kNew wait for one of these, which is
  // called once it is another one. GreetWaiting goes on with them.
  void GreetWaiting();
  void CloseWaiting();
  // Called by one thread after the shutdown, which has closed everything.
  // Returns when no other thread uses this any more, which may be never.
  void AwaitEnd();

  LinkHost host;
  const std::shared_ptr<Acceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
  mutable Mutex mutex;
  State state ABSL_GUARDED_BY(mutex) = State::kNew;
  std::unordered_map<std::string, std::shared_ptr<Link>> links
      ABSL_GUARDED_BY(mutex);
  // Of workers without a link.
  NewestMap<std::string, Link::Incarnations> forgotten ABSL_GUARDED_BY(mutex){
      1024};

 private:
  class Guest;
  using Waiting = std::vector<
      std::pair<std::shared_ptr<GrpcStream>, std::shared_ptr<Guest>>>;

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
  // Returns an error if there are too many unauthenticated peers, or few
  // descriptors are left.
  grpc::Status CheckRoom(const std::string& peer) const;
  // Returns false if the worker has started, so that nobody needs to wait.
  bool Wait(const std::shared_ptr<GrpcStream>& stream,
            const std::shared_ptr<Guest>& guest);
  void StopWaiting(const Guest& guest);
  Waiting TakeWaiting();
  // Takes a stream that has sent its hello. Returns false if it was refused.
  bool Admit(const std::shared_ptr<GrpcStream>& stream,
             const wire::Hello& hello);

  Waiting waiting_ ABSL_GUARDED_BY(mutex);
};

}  // namespace baton::rpc
