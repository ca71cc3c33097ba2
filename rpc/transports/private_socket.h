// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace baton::rpc {

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
