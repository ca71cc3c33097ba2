// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rpc/peers.h"
#include "rpc/worker.h"

// How the worker that a caller names is found.
namespace baton::rpc::internal {
namespace {

constexpr size_t kNamed = 20;  // in an error

bool Matches(const Target& target, const WorkerInfo& worker) {
  if (const auto* name = std::get_if<std::string>(&target.key())) {
    return *name == worker.name;
  }
  if (const auto* rank = std::get_if<Rank>(&target.key())) {
    return *rank == worker.rank;
  }
  return std::get<WorkerInfo>(target.key()).name == worker.name;
}

}  // namespace

const Peers::Peer* Peers::TargetLocked(const Target& target) const {
  if (const auto* rank = std::get_if<Rank>(&target.key())) {
    const auto found = by_rank_.find(static_cast<int32_t>(*rank));
    return found == by_rank_.end() ? nullptr : found->second;
  }
  const auto* name = std::get_if<std::string>(&target.key());
  const auto found = peers_.find(
      name != nullptr ? *name : std::get<WorkerInfo>(target.key()).name);
  return found == peers_.end() ? nullptr : &found->second;
}

absl::Status Peers::UnknownLocked(const Target& target) const {
  for (const auto& [name, removed] : removed_) {
    if (!Matches(target, removed.info)) continue;
    return absl::UnavailableError(absl::StrCat(
        "worker ", name, " is not there any more: ", removed.why.message()));
  }
  std::vector<std::string> names{self_.name};
  for (const auto& [name, peer] : peers_) names.push_back(name);
  const size_t named = std::min(names.size(), kNamed);
  const auto end = names.begin() + static_cast<long>(named);
  std::partial_sort(names.begin(), end, names.end());
  const size_t more = names.size() - named;
  return absl::NotFoundError(
      absl::StrCat("no worker is called ", target.ToString(),
                   "; there are: ", absl::StrJoin(names.begin(), end, ", "),
                   more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

absl::StatusOr<WorkerInfo> Peers::Find(const Target& target) const {
  WorkerInfo found = self_;
  if (!Matches(target, self_)) {
    MutexLock lock(mutex_);
    const Peer* peer = TargetLocked(target);
    if (peer == nullptr) return UnknownLocked(target);
    found = peer->info;
  }
  const auto* wanted = std::get_if<WorkerInfo>(&target.key());
  if (wanted != nullptr && !SameWorker(*wanted, found)) {
    return absl::UnavailableError(
        absl::StrCat("worker ", found.name,
                     " was started again; what it had before is lost"));
  }
  return found;
}

std::vector<WorkerInfo> Peers::All() const {
  std::vector<WorkerInfo> all{self_};
  {
    MutexLock lock(mutex_);
    for (const auto& [name, peer] : peers_) {
      if (peer.state != State::kGone) all.push_back(peer.info);
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.rank, a.name) < std::pair(b.rank, b.name);
  });
  return all;
}

}  // namespace baton::rpc::internal
