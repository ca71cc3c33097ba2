// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>

namespace baton::rpc::internal {

// Which of a peer's request numbers have been seen: each may be served once.
// Remembers a bounded number of gaps; what is missing in an older one counts as
// seen. 0 and the largest number are never new. Thread-compatible.
class SeenNumbers {
 public:
  bool FirstTime(uint64_t number);

 private:
  void ForgetOldestGaps();

  uint64_t next_ = 1;                     // from here on all are new
  std::map<uint64_t, uint64_t> missing_;  // and these, from key to value - 1
};

}  // namespace baton::rpc::internal
