// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/channels/segment.h"

// Unix sockets that pass descriptors between processes, which gRPC cannot do.
// They connect only processes of the same user. Nothing here blocks: a worker
// announces over gRPC what it has passed, and only then does the peer receive
// it.
namespace baton::rpc {

// One end of a connection. Thread-compatible.
class FdConnection {
 public:
  // `key` identifies this connection to the listener.
  static absl::StatusOr<FdConnection> Dial(const std::string& path,
                                           const std::string& key);
  explicit FdConnection(Fd socket) : socket_(std::move(socket)) {}

  // ResourceExhausted if the other end has too many descriptors still to
  // receive.
  absl::Status Send(const Fd& fd);
  // Returns the next descriptor that was sent. NotFound if there is none;
  // InvalidArgument if several came at once, all of which are closed.
  absl::StatusOr<Fd> Receive();

 private:
  Fd socket_;
};

// Listens at a path without a thread of its own. Thread-safe.
class FdListener {
 public:
  // The owner of the path's directory removes the path; this class does not.
  static absl::StatusOr<std::shared_ptr<FdListener>> Make(
      const std::string& path);

  const std::string& path() const { return path_; }
  // Returns the connection that was dialed with `key`; NotFound if there is
  // none.
  absl::StatusOr<FdConnection> Accept(const std::string& key);

 private:
  struct UnauthenticatedPeer {
    Fd socket;
    std::string key;  // empty until it has arrived
  };
  FdListener(std::string path, Fd socket)
      : path_(std::move(path)), socket_(std::move(socket)) {}
  void TakeInLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  Mutex mutex_;
  Fd socket_ ABSL_GUARDED_BY(mutex_);
  std::vector<UnauthenticatedPeer> unauthenticated_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
