// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::rpc {

// A worker that runs on this machine, as it tells others of its user.
struct LocalWorker {
  std::string cluster;
  std::string name;
  std::string address;  // without what this machine alone understands
};

// Those of this user, by cluster and name. Thread-safe.
std::vector<LocalWorker> LocalWorkers();

// A directory that only this user may enter, holding two socket paths; gone
// with this object. One whose process was killed is removed by the next Make of
// the same user: a lock in it tells. Thread-compatible.
class PrivateSocket {
 public:
  // In $TMPDIR, else /tmp.
  static absl::StatusOr<PrivateSocket> Make();
  PrivateSocket() = default;
  PrivateSocket(PrivateSocket&& other) noexcept;
  PrivateSocket& operator=(PrivateSocket&& other) noexcept;
  ~PrivateSocket();

  // From here on LocalWorkers has it, for as long as this object lives. What
  // cannot be written stays untold.
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
