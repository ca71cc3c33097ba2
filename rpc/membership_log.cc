// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/membership_log.h"

#include <algorithm>
#include <unordered_set>

namespace baton::rpc {

void MembershipLog::Add(uint64_t version, Change change,
                        const WorkerInfo& worker, size_t most,
                        const std::string& why) {
  // The log begins at the first version; no member has an earlier list.
  if (entries_.empty()) oldest_ = version;
  entries_.push_back({version, change, worker, why});
  while (entries_.size() > most) {
    oldest_ = entries_.front().version;
    entries_.pop_front();
  }
}

std::optional<MembershipChange> MembershipLog::Since(uint64_t known) const {
  if (entries_.empty() || known < oldest_ || known > entries_.back().version) {
    return std::nullopt;
  }
  MembershipChange changed{.version = entries_.back().version};
  std::unordered_set<uint64_t> seen;
  for (auto it = entries_.rbegin();
       it != entries_.rend() && it->version > known; ++it) {
    if (!seen.insert(it->worker.incarnation).second) continue;
    if (it->change == Change::kJoined) {
      changed.joined.push_back(it->worker);
    } else {
      changed.departed.push_back({it->worker.name, it->worker.incarnation,
                                  it->change == Change::kLost, it->why});
    }
  }
  std::reverse(changed.joined.begin(), changed.joined.end());
  std::reverse(changed.departed.begin(), changed.departed.end());
  return changed;
}

}  // namespace baton::rpc
