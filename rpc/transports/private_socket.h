// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::rpc {

// A worker that runs on this machine, as it announces itself to its user's
// others.
struct LocalWorker {
  std::string cluster;
  std::string name;
  std::string address;  // without what only this machine understands
};

// Returns the workers of this user, by cluster and name. Thread-safe.
std::vector<LocalWorker> LocalWorkers();

// A directory that only this user may enter, with two socket paths; removed
// with this object. If a process was killed, the next Make of the same user
// removes its directory, which it recognizes by a lock in it.
// Thread-compatible.
class PrivateSocket {
 public:
  // Where all are made: $TMPDIR or, if that is not set or too long, /tmp.
  static std::string Base();
  static absl::StatusOr<PrivateSocket> Make();
  PrivateSocket() = default;
  PrivateSocket(PrivateSocket&& other) noexcept;
  PrivateSocket& operator=(PrivateSocket&& other) noexcept;
  ~PrivateSocket();

  // Makes LocalWorkers list `worker` for as long as this object lives. If it
  // cannot be written, it is not listed.
  void Announce(const LocalWorker& worker) const;

  bool empty() const { return directory_.empty(); }
  std::string path() const;     // for gRPC
  std::string fd_path() const;  // for descriptors (rpc/channels/fd_socket.h)

 private:
  PrivateSocket(std::string directory, int lock)
      : directory_(std::move(directory)), lock_(lock) {}

  std::string directory_;
  int lock_ = -1;
};

}  // namespace baton::rpc
