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

// Unix sockets that hand descriptors from process to process, which gRPC
// cannot. Only processes of the same user meet on them. Nothing here waits: a
// worker says over gRPC what it has passed, and the other takes it then.
namespace baton::rpc {

// One end of a connection. Thread-compatible.
class FdConnection {
 public:
  // `key` tells the listener which connection this is.
  static absl::StatusOr<FdConnection> Dial(const std::string& path,
                                           const std::string& key);
  explicit FdConnection(Fd socket) : socket_(std::move(socket)) {}

  // ResourceExhausted when the other end has too many to take.
  absl::Status Send(const Fd& fd);
  // The next one that was sent; NotFound when there is none, InvalidArgument
  // when more came with it, which are closed.
  absl::StatusOr<Fd> Receive();

 private:
  Fd socket_;
};

// Listens at a path, with nobody waiting there. Thread-safe.
class FdListener {
 public:
  // The path is removed with the directory that it is in, not by this.
  static absl::StatusOr<std::shared_ptr<FdListener>> Make(
      const std::string& path);

  const std::string& path() const { return path_; }
  // The connection that was dialed with `key`; NotFound when there is none.
  absl::StatusOr<FdConnection> Accept(const std::string& key);

 private:
  struct UnauthenticatedPeer {
    Fd socket;
    std::string key;  // empty until it has said it
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
