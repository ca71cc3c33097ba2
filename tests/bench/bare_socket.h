// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <vector>

namespace baton::bench {

// A process at the other end of a bare socket that reads as many bytes as a
// 64-byte head says, and answers with 64 bytes. Made before any gRPC object:
// fork after that is not safe.
class BareSocket {
 public:
  explicit BareSocket(bool tcp);
  ~BareSocket();
  BareSocket(const BareSocket&) = delete;
  BareSocket& operator=(const BareSocket&) = delete;

  void Transfer(const std::vector<char>& data);

 private:
  int fd_ = -1;
  pid_t child_ = -1;
};

}  // namespace baton::bench
