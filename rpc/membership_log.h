// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "rpc/rendezvous.h"

namespace baton::rpc {

// The latest changes of a cluster's membership, so that a member with an
// earlier version can be sent the changes instead of the whole list.
// Thread-compatible.
class MembershipLog {
 public:
  enum class Change { kJoined, kLeft, kLost };

  // Adds a change. Versions must grow. Only the latest `most` changes are kept.
  // `why` is the reason of a departure.
  void Add(uint64_t version, Change change, const WorkerInfo& worker,
           size_t most, const std::string& why = "");
  // Returns the last change of each incarnation since `known`, or nothing if
  // `known` is too old or from another log.
  std::optional<MembershipChange> Since(uint64_t known) const;

 private:
  struct Entry {
    uint64_t version;
    Change change;
    WorkerInfo worker;
    std::string why;
  };
  uint64_t oldest_ = 0;  // changes since this version are complete
  std::deque<Entry> entries_;
};

}  // namespace baton::rpc
