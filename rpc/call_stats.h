// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/mutex.h"
#include "rpc/debug_info.h"
#include "rpc/histogram.h"
#include "rpc/methods.h"

namespace baton::rpc::internal {

// Statistics of the calls between a worker and its peers that have ended, by
// peer and method. Peers and methods beyond some thousands share one entry, as
// do forgotten peers. Thread-safe.
class CallStats {
 public:
  enum class Side : uint8_t { kCaller, kCallee };
  struct Ended {
    bool ok = true;
    uint64_t micros = 0;
    uint64_t bytes_sent = 0;  // by this worker
    uint64_t bytes_received = 0;
  };

  void Add(Side side, const std::string& peer, MethodKey method,
           const std::string& method_name, const Ended& ended);
  // Moves the counts of `peer` to "others".
  void Forget(const std::string& peer);
  std::vector<MethodStats> All() const;  // by side, peer and method

 private:
  struct Key {
    Side side = Side::kCaller;
    std::string peer;
    MethodKey method;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<std::string>()(key.peer) ^
             (key.method.type * 31 + key.method.index * 2 +
              static_cast<size_t>(key.side));
    }
  };
  struct Entry {
    std::string peer;
    std::string method;
    Side side = Side::kCaller;
    uint64_t calls = 0;
    uint64_t failed = 0;
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t total_us = 0;
    Histogram latency;
  };

  Entry& FindLocked(const Key& key, const std::string& method_name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<Entry>, Hash> entries_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal
