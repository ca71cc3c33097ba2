// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>

namespace baton::rpc::internal {

// Records which of a peer's request numbers have been seen, so that each
// request is served at most once. Remembers a bounded number of gaps; the
// numbers of older gaps count as seen. 0 and the largest number always count as
// seen. Thread-compatible.
class SeenNumbers {
 public:
  bool FirstTime(uint64_t number);

 private:
  void ForgetOldestGaps();

  uint64_t next_ = 1;  // no number from here on was seen
  // Nor were these, from key to value - 1.
  std::map<uint64_t, uint64_t> missing_;
};

}  // namespace baton::rpc::internal
