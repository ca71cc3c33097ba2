// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/state_store.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace baton::dist {
namespace {

constexpr std::ptrdiff_t kKept = 2;
constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
constexpr int64_t kLast = std::numeric_limits<int64_t>::max();

}  // namespace

std::vector<KeptState> StateStore::Fence(uint64_t epoch) {
  const MutexLock lock(mutex_);
  epoch_ = std::max(epoch_, epoch);
  std::vector<KeptState> kept;
  for (const auto& [key, state] : states_)
    kept.push_back({key.first, key.second});
  return kept;
}

absl::Status StateStore::Put(uint64_t epoch, const KeptState& key,
                             const NamedTensors& state) {
  std::vector<NamedTensors> dropped;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  if (epoch < epoch_) {
    return absl::AbortedError(
        absl::StrCat("the state after step ", key.step,
                     " is of a pipeline that has been made anew since"));
  }
  const auto end = states_.upper_bound({key.place, kLast});
  for (auto at = states_.lower_bound({key.place, key.step}); at != end;) {
    dropped.push_back(std::move(at->second));
    at = states_.erase(at);
  }
  states_[{key.place, key.step}] = state;
  auto oldest = states_.lower_bound({key.place, kFirst});
  while (std::distance(oldest, end) > kKept) {
    dropped.push_back(std::move(oldest->second));
    oldest = states_.erase(oldest);
  }
  return absl::OkStatus();
}

absl::StatusOr<NamedTensors> StateStore::Get(const KeptState& key) {
  const MutexLock lock(mutex_);
  const auto found = states_.find({key.place, key.step});
  if (found != states_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no state of place ",
                                          key.place, " after step ", key.step));
}

void StateStore::Drop(const KeptState& key) {
  NamedTensors dropped;
  const MutexLock lock(mutex_);
  const auto found = states_.find({key.place, key.step});
  if (found == states_.end()) return;
  dropped = std::move(found->second);
  states_.erase(found);
}

}  // namespace baton::dist
