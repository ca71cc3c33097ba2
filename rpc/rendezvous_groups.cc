// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/rendezvous_checks.h"

namespace baton::rpc {
namespace {

constexpr size_t kMaxClusters = 1000;

}  // namespace

using internal::CheckJoin;
using internal::TooLateOrTwice;
using internal::TwoOfOneName;
using internal::WhoIsMissing;

void RendezvousGroups::Enter(const JoinOptions& options, Done done) {
  absl::Status status = CheckJoin(options);
  MutexLock lock(mutex_);
  if (status.ok() && closed_) {
    status = absl::UnavailableError("the rendezvous has closed");
  }
  if (!status.ok()) {
    done(status);
    return;
  }
  if (groups_.size() >= kMaxClusters && groups_.count(options.cluster) == 0) {
    done(absl::ResourceExhaustedError(
        absl::StrCat("the rendezvous serves ", kMaxClusters,
                     " clusters already; start another one")));
    return;
  }
  Group& group = groups_[options.cluster];
  AdmitOrRefuse(group, {options, std::move(done)});
  if (group.waiting.empty() && group.members.empty()) {
    groups_.erase(options.cluster);
  }
}

void RendezvousGroups::AdmitOrRefuse(Group& group, Waiting waiting) {
  const absl::Status status = Admit(group, waiting.options);
  if (!status.ok()) {
    waiting.done(status);
    return;
  }
  group.waiting.push_back(std::move(waiting));
  CompleteIfAllCame(group);
}

// They were let in beside nobody, and may not all fit beside those who stay.
void RendezvousGroups::Settle(Group& group) {
  group.ending.reset();
  for (Waiting& next : std::exchange(group.waiting, {})) {
    AdmitOrRefuse(group, std::move(next));
  }
}

void RendezvousGroups::SeatSuccessors(Group& group) {
  if (group.ending && group.members.empty()) {
    Settle(group);
  } else {
    CompleteIfAllCame(group);
  }
}

// Those who are there count, unless the cluster is ending.
void RendezvousGroups::CompleteIfAllCame(Group& group) {
  if (group.waiting.empty() || group.ending) return;
  for (const Waiting& waiting : group.waiting) {
    if (group.Find(waiting.options.self.name) != nullptr) return;
  }
  int there = group.Counted();
  for (const Waiting& waiting : group.waiting) {
    if (waiting.options.world_size == kOneMore) continue;
    if (group.members.empty()) group.world_size = waiting.options.world_size;
    ++there;
  }
  const bool all = there > 0 && there == group.world_size;
  if (all || !group.members.empty()) Complete(group, all);
}

bool RendezvousGroups::Group::Counts(const Member& member) const {
  return static_cast<int>(member.info.rank) < world_size;
}

int RendezvousGroups::Group::Counted() const {
  return static_cast<int>(
      std::count_if(members.begin(), members.end(),
                    [this](const Member& member) { return Counts(member); }));
}

const RendezvousGroups::Member* RendezvousGroups::Group::Find(
    const std::string& name) const {
  for (const Member& member : members) {
    if (member.info.name == name) return &member;
  }
  return nullptr;
}

std::vector<WorkerInfo> RendezvousGroups::Group::List() const {
  std::vector<WorkerInfo> list;
  for (const Member& member : members) list.push_back(member.info);
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return list;
}

// For the place of one that is lost, or, under its own name, may be: that one's
// next renewal tells, or the end of its lease.
absl::Status RendezvousGroups::AdmitBesideMembers(
    const Group& group, const JoinOptions& options) const {
  const std::string& name = options.self.name;
  const Member* before = group.Find(name);
  const bool one_more = options.world_size == kOneMore;
  const bool full = !one_more && group.Counted() == group.world_size;
  if (before != nullptr ? before->lease.count() == 0 : full) {
    return TooLateOrTwice(options, group.members.size());
  }
  if (!one_more && options.world_size != group.world_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", name, " expects a cluster of ", options.world_size,
        " workers, but it has ", group.world_size));
  }
  for (const Member& member : group.members) {
    if (&member == before) continue;
    if (static_cast<int>(member.info.rank) == options.wanted_rank) {
      return absl::AlreadyExistsError(absl::StrCat(
          "rank ", options.wanted_rank, " is worker ", member.info.name));
    }
  }
  return absl::OkStatus();
}

absl::Status RendezvousGroups::Admit(Group& group, const JoinOptions& options) {
  const std::string& name = options.self.name;
  if (!group.members.empty() && !group.ending) {
    RETURN_IF_ERROR(AdmitBesideMembers(group, options));
  }
  if (group.doubled.count(name) > 0) return TwoOfOneName(name);
  for (auto it = group.waiting.begin(); it != group.waiting.end(); ++it) {
    const JoinOptions& other = it->options;
    if (other.self.name == name) {
      group.doubled.insert(name);
      it->done(TwoOfOneName(name));
      group.waiting.erase(it);
      return TwoOfOneName(name);
    }
    if (other.world_size != options.world_size &&
        other.world_size != kOneMore && options.world_size != kOneMore) {
      return absl::InvalidArgumentError(absl::StrCat(
          "worker ", name, " expects a cluster of ", options.world_size,
          " workers, worker ", other.self.name, " one of ", other.world_size));
    }
    if (options.wanted_rank >= 0 && other.wanted_rank == options.wanted_rank) {
      return absl::AlreadyExistsError(
          absl::StrCat("rank ", options.wanted_rank, " is wanted by worker ",
                       other.self.name, " and by worker ", name));
    }
  }
  return absl::OkStatus();
}

void RendezvousGroups::Complete(Group& group, bool all) {
  const auto seated = std::stable_partition(
      group.waiting.begin(), group.waiting.end(), [&](const Waiting& waiting) {
        return !all && waiting.options.world_size != kOneMore;
      });
  if (seated == group.waiting.end()) return;
  group.version = ++versions_;
  std::set<int> taken;
  for (const Member& member : group.members) {
    taken.insert(static_cast<int>(member.info.rank));
  }
  const auto now = Clock::now();
  const auto place = [&](const JoinOptions& options, int rank) {
    while (!taken.insert(rank).second) ++rank;
    group.members.push_back({options.self, options.lease, now});
    group.members.back().info.rank = Rank{rank};
  };
  for (auto it = seated; it != group.waiting.end(); ++it) {
    if (it->options.wanted_rank >= 0)
      place(it->options, it->options.wanted_rank);
  }
  // The others in the order in which they came.
  for (auto it = seated; it != group.waiting.end(); ++it) {
    if (it->options.wanted_rank >= 0) continue;
    const bool one_more = it->options.world_size == kOneMore;
    place(it->options, one_more ? group.world_size : 0);
  }
  const std::vector<WorkerInfo> list = group.List();
  for (auto it = seated; it != group.waiting.end(); ++it) it->done(list);
  group.waiting.erase(seated, group.waiting.end());
  group.doubled.clear();
}

void RendezvousGroups::Remove(
    const std::string& cluster, const WorkerInfo& self,
    const std::function<absl::Status(const Group&)>& why) {
  MutexLock lock(mutex_);
  auto found = groups_.find(cluster);
  if (found == groups_.end()) return;
  Group& group = found->second;
  for (auto it = group.waiting.begin(); it != group.waiting.end(); ++it) {
    if (!(it->options.self == self)) continue;
    it->done(why(group));
    group.waiting.erase(it);
    break;
  }
  if (group.waiting.empty() && group.members.empty()) groups_.erase(found);
}

void RendezvousGroups::Expire(const std::string& cluster,
                              const WorkerInfo& self) {
  Remove(cluster, self, [&](const Group& group) -> absl::Status {
    std::vector<JoinOptions> workers;
    const JoinOptions* own = nullptr;
    if (!group.ending) {
      for (const Member& member : group.members) {
        if (member.info.name == self.name || !group.Counts(member)) continue;
        workers.push_back({.self = member.info});
      }
    }
    for (const Waiting& waiting : group.waiting) {
      if (waiting.options.world_size != kOneMore)
        workers.push_back(waiting.options);
      if (waiting.options.self == self) own = &waiting.options;
    }
    return absl::DeadlineExceededError(WhoIsMissing(*own, workers));
  });
}

void RendezvousGroups::Cancel(const std::string& cluster,
                              const WorkerInfo& self) {
  Remove(cluster, self, [](const Group&) {
    return absl::CancelledError("the worker has gone");
  });
}

absl::Status RendezvousGroups::Leave(const std::string& cluster,
                                     const std::string& name,
                                     uint64_t incarnation,
                                     Clock::time_point now) {
  MutexLock lock(mutex_);
  auto found = groups_.find(cluster);
  if (found != groups_.end()) {
    const size_t left =
        std::erase_if(found->second.members, [&](const Member& member) {
          return member.info.name == name &&
                 member.info.incarnation == incarnation;
        });
    if (left > 0) {
      Group& group = found->second;
      group.ending = now;
      group.version = ++versions_;
      SeatSuccessors(group);
      if (group.members.empty() && group.waiting.empty()) groups_.erase(found);
      return absl::OkStatus();
    }
  }
  return absl::NotFoundError(
      absl::StrCat("cluster ", cluster, " has no worker ", name));
}

RendezvousGroups::Result RendezvousGroups::List(
    const std::string& cluster) const {
  MutexLock lock(mutex_);
  auto found = groups_.find(cluster);
  if (found == groups_.end() || found->second.members.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no cluster ", cluster, " has met here"));
  }
  return found->second.List();
}

absl::StatusOr<Membership> RendezvousGroups::Renew(const std::string& cluster,
                                                   const std::string& name,
                                                   uint64_t incarnation,
                                                   uint64_t known,
                                                   Clock::time_point now) {
  MutexLock lock(mutex_);
  // Whose list is gone strikes nobody off.
  if (closed_) return absl::UnavailableError("the rendezvous has closed");
  auto found = groups_.find(cluster);
  if (found != groups_.end()) {
    Group& group = found->second;
    for (Member& member : group.members) {
      if (member.info.name != name || member.info.incarnation != incarnation) {
        continue;
      }
      member.heard = now;
      RefuseClaims(group, name);
      Membership membership{.version = group.version, .workers = {}};
      if (group.version != known) membership.workers = group.List();
      return membership;
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "cluster ", cluster, " has no such worker ", name, " any more"));
}

// The worker whose name they want is there.
void RendezvousGroups::RefuseClaims(Group& group, const std::string& name) {
  if (group.ending) return;
  std::erase_if(group.waiting, [&](Waiting& waiting) {
    if (waiting.options.self.name != name) return false;
    waiting.done(TooLateOrTwice(waiting.options, group.members.size()));
    return true;
  });
}

void RendezvousGroups::Reap(Clock::time_point now,
                            std::chrono::milliseconds interval) {
  MutexLock lock(mutex_);
  const auto stopped = now - reaped_ - interval;
  reaped_ = now;
  for (auto it = groups_.begin(); it != groups_.end();) {
    Group& group = it->second;
    const auto is_lost = [&](Member& member) {
      if (stopped > interval) member.heard += stopped;
      const bool lost =
          member.lease.count() > 0 && now - member.heard > member.lease;
      if (lost) {
        LogWarning("cluster ", it->first, ": worker ", member.info.name,
                   " is struck off, not heard for its lease of ",
                   member.lease.count(), " ms");
      }
      return lost;
    };
    if (std::erase_if(group.members, is_lost) > 0) {
      group.version = ++versions_;
      SeatSuccessors(group);
    }
    if (group.ending && now - *group.ending >= kSettling) Settle(group);
    const bool empty = group.members.empty() && group.waiting.empty();
    it = empty ? groups_.erase(it) : std::next(it);
  }
}

void RendezvousGroups::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  for (auto& [cluster, group] : groups_) {
    for (Waiting& waiting : group.waiting) {
      waiting.done(absl::UnavailableError("the rendezvous has closed"));
    }
  }
  groups_.clear();
}

}  // namespace baton::rpc
