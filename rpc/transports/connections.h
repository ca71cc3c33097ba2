// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "core/mutex.h"
#include "core/newest_map.h"
#include "rpc/transports/acceptor.h"
#include "rpc/transports/link.h"
#include "rpc/transports/link_service.h"

namespace baton::rpc {

// The part of a transport that may outlast it. gRPC ends a stream only when the
// socket has accepted or refused what was written to it. While the peer is
// stopped, its socket may do neither. Thread-safe, once the server has started.
struct Connections {
  enum class State { kNew, kStarted, kShutDown };

  explicit Connections(const GrpcOptions& options);

  std::shared_ptr<Link> FindOrMakeLocked(const WorkerInfo& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Takes a stream that has sent its hello. Returns false if it was refused.
  bool Admit(const std::shared_ptr<GrpcStream>& stream, const Hello& hello);
  // Called by one thread after the shutdown, which has closed everything.
  // Returns when no other thread uses this any more, which may be never.
  void AwaitEnd();

  LinkHost host;
  const std::shared_ptr<Acceptor> acceptor;
  LinkService service;
  std::unique_ptr<grpc::Server> server;

  mutable Mutex mutex;
  State state ABSL_GUARDED_BY(mutex) = State::kNew;
  std::unordered_map<std::string, std::shared_ptr<Link>> links
      ABSL_GUARDED_BY(mutex);
  // Of workers without a link.
  NewestMap<std::string, Link::Incarnations> forgotten ABSL_GUARDED_BY(mutex){
      1024};
};

}  // namespace baton::rpc
