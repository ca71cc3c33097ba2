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

// The latest changes of a cluster's members, so that who knows an earlier
// version is told what has changed and not all there are. Thread-compatible.
class MembershipLog {
 public:
  enum class Change { kJoined, kLeft, kLost };

  // Versions grow. Of the changes only the latest `most` are kept. `why` is
  // that of a departure.
  void Add(uint64_t version, Change change, const WorkerInfo& worker,
           size_t most, const std::string& why = "");
  // Of each incarnation what became of it last. Nothing if `known` is too old,
  // or is of another log.
  std::optional<MembershipChange> Since(uint64_t known) const;

 private:
  struct Entry {
    uint64_t version;
    Change change;
    WorkerInfo worker;
    std::string why;
  };
  uint64_t oldest_ = 0;  // version that all that is kept came after
  std::deque<Entry> entries_;
};

}  // namespace baton::rpc
