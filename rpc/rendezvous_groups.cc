// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_groups.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

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

namespace {

constexpr size_t kMaxClusters = 1000;

}  // namespace

using internal::CheckJoin;
using internal::CheckWorldSize;
using internal::NoRoom;
using internal::SomeAreMissing;
using internal::TooLateOrTwice;
using internal::TwoOfOneName;

uint64_t RendezvousGroups::FirstVersion() {
  return static_cast<uint64_t>(
      std::chrono::system_clock::now().time_since_epoch() /
      std::chrono::microseconds(1));
}

void RendezvousGroups::AnswerLater(Done done, Result result) {
  answers_.push_back(
      [done = std::move(done), result = std::move(result)] { done(result); });
}

RendezvousGroups::Turn::Turn(RendezvousGroups& groups) : groups_(groups) {
  groups_.mutex_.Lock();
}

RendezvousGroups::Turn::~Turn() {
  const auto answers = std::exchange(groups_.answers_, {});
  groups_.mutex_.Unlock();
  for (const auto& answer : answers) answer();
}

void RendezvousGroups::Enter(const JoinOptions& options, Done done) {
  absl::Status status = CheckJoin(options);
  if (status.ok()) status = CheckWorldSize(options, max_members_);
  const Turn turn(*this);
  if (status.ok()) status = OpenGroup(options.cluster);
  if (!status.ok()) return AnswerLater(std::move(done), status);
  Group& group = groups_[options.cluster];
  AdmitOrRefuse(group, {options, std::move(done)});
  if (group.Empty()) groups_.erase(options.cluster);
}

absl::Status RendezvousGroups::OpenGroup(const std::string& cluster) const {
  if (closed_) return absl::UnavailableError("the rendezvous has closed");
  if (groups_.size() >= kMaxClusters && groups_.count(cluster) == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the rendezvous serves ", kMaxClusters,
                     " clusters already; start another one"));
  }
  return absl::OkStatus();
}

void RendezvousGroups::AdmitOrRefuse(Group& group, Waiting waiting) {
  const absl::Status status = Admit(group, waiting.options);
  if (!status.ok()) {
    AnswerLater(std::move(waiting.done), status);
    return;
  }
  group.waiting.push_back(std::move(waiting));
  CompleteIfAllCame(group);
}

// The waiting workers were admitted without regard to the members that stay, so
// each is admitted anew.
void RendezvousGroups::Settle(Group& group) {
  group.settled_at.reset();
  if (std::exchange(group.restoring, false)) TellListeners(group);
  for (Waiting& next : std::exchange(group.waiting, {})) {
    AdmitOrRefuse(group, std::move(next));
  }
}

// Seats the waiting workers if the cluster is then complete, counting its
// present members, unless it is ending.
void RendezvousGroups::CompleteIfAllCame(Group& group) {
  if (group.waiting.empty() || group.settled_at) return;
  for (const Waiting& waiting : group.waiting) {
    if (group.members.contains(waiting.options.self.name)) return;
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

// Checks a worker that comes for the place of a lost member. A member with its
// own name may be lost, too: the end of that member's lease, or its next
// renewal, decides.
absl::Status RendezvousGroups::AdmitBesideMembers(
    const Group& group, const JoinOptions& options) const {
  const std::string& name = options.self.name;
  const auto found = group.members.find(name);
  const Member* before =
      found == group.members.end() ? nullptr : &found->second;
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
  for (const auto& [other, member] : group.members) {
    if (&member == before) continue;
    if (static_cast<int>(member.info.rank) == options.wanted_rank) {
      return absl::AlreadyExistsError(
          absl::StrCat("rank ", options.wanted_rank, " is worker ", other));
    }
  }
  return absl::OkStatus();
}

absl::Status RendezvousGroups::Admit(Group& group, const JoinOptions& options) {
  const std::string& name = options.self.name;
  if (!group.members.empty() && !group.settled_at) {
    RETURN_IF_ERROR(AdmitBesideMembers(group, options));
  }
  if (group.doubled.count(name) > 0) return TwoOfOneName(name);
  for (auto it = group.waiting.begin(); it != group.waiting.end(); ++it) {
    const JoinOptions& other = it->options;
    if (other.self.name == name) {
      group.doubled.emplace(name, Clock::now());
      AnswerLater(std::move(it->done), TwoOfOneName(name));
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

std::vector<RendezvousGroups::Waiting>::iterator RendezvousGroups::ChooseSeated(
    Group& group, bool all) {
  std::vector<Waiting>& waiting = group.waiting;
  const auto one_more = [](const Waiting& each) {
    return each.options.world_size == kOneMore;
  };
  const auto kept = std::stable_partition(
      waiting.begin(), waiting.end(),
      [&](const Waiting& each) { return !all && !one_more(each); });
  const auto first = kept - waiting.begin();
  if (max_members_ == 0) return kept;
  std::stable_partition(kept, waiting.end(), std::not_fn(one_more));
  const auto members = static_cast<ptrdiff_t>(group.members.size());
  const auto room = std::max<ptrdiff_t>(0, max_members_ - members);
  while (waiting.end() - waiting.begin() > first + room) {
    AnswerLater(std::move(waiting.back().done),
                NoRoom(waiting.back().options, max_members_));
    waiting.pop_back();
  }
  return waiting.begin() + first;
}

void RendezvousGroups::Complete(Group& group, bool all) {
  const auto seated = ChooseSeated(group, all);
  if (seated == group.waiting.end()) return;
  const auto now = Clock::now();
  std::set<std::string> unheard;
  std::set<int> taken;
  for (const auto& [name, member] : group.members) {
    if (member.listens) unheard.insert(name);
    taken.insert(static_cast<int>(member.info.rank));
  }
  const auto free_from = [&](int rank) {
    while (!taken.insert(rank).second) ++rank;
    return rank;
  };
  for (auto it = seated; it != group.waiting.end(); ++it) {
    const int wanted = it->options.wanted_rank;
    if (wanted >= 0) Seat(group, it->options, free_from(wanted), now);
  }
  // The others get the free ranks in the order in which they came.
  for (auto it = seated; it != group.waiting.end(); ++it) {
    if (it->options.wanted_rank >= 0) continue;
    const bool one_more = it->options.world_size == kOneMore;
    Seat(group, it->options, free_from(one_more ? group.world_size : 0), now);
  }
  const auto joined = std::make_shared<const Membership>(
      Membership{.version = group.version, .workers = group.List()});
  for (auto it = seated; it != group.waiting.end(); ++it) {
    if (unheard.empty()) {
      AnswerLater(std::move(it->done), joined);
      continue;
    }
    const std::chrono::milliseconds lease = it->options.lease;
    const auto longest =
        lease.count() == 0 ? kHearing : std::min(kHearing, lease / 2);
    group.announced.push_back(
        {std::move(it->done), joined, now + longest, unheard});
  }
  group.waiting.erase(seated, group.waiting.end());
  group.doubled.clear();
  TellListeners(group);
}

void RendezvousGroups::Seat(Group& group, const JoinOptions& options, int rank,
                            Clock::time_point now) {
  WorkerInfo info = options.self;
  info.rank = Rank{rank};
  group.members[info.name] = {info, options.lease, now, options.listens};
  Changed(group, MembershipLog::Change::kJoined, info);
}

void RendezvousGroups::Refuse(const std::string& cluster,
                              const WorkerInfo& self, const Reason& why) {
  const Turn turn(*this);
  const auto found = groups_.find(cluster);
  if (found == groups_.end()) return;
  Group& group = found->second;
  const auto it = std::find_if(
      group.waiting.begin(), group.waiting.end(),
      [&](const Waiting& waiting) { return waiting.options.self == self; });
  if (it == group.waiting.end()) return;
  AnswerLater(std::move(it->done), why(group, it->options));
  group.waiting.erase(it);
  if (group.Empty()) groups_.erase(found);
}

void RendezvousGroups::Expire(const std::string& cluster,
                              const WorkerInfo& self) {
  Refuse(cluster, self, [](const Group& group, const JoinOptions& own) {
    std::vector<JoinOptions> workers;
    for (const auto& [name, member] : group.members) {
      if (group.settled_at || name == own.self.name) continue;
      if (group.Counts(member.info)) workers.push_back({.self = member.info});
    }
    for (const Waiting& waiting : group.waiting)
      workers.push_back(waiting.options);
    return SomeAreMissing(own, workers);
  });
}

void RendezvousGroups::Cancel(const std::string& cluster,
                              const WorkerInfo& self) {
  Refuse(cluster, self, [](const Group&, const JoinOptions&) {
    return absl::CancelledError("the worker has gone");
  });
}

void RendezvousGroups::RefuseNamed(Group& group, const std::string& name,
                                   const Reason& why) {
  std::erase_if(
      group.waiting, [&](Waiting& waiting) ABSL_NO_THREAD_SAFETY_ANALYSIS {
        if (waiting.options.self.name != name) return false;
        AnswerLater(std::move(waiting.done), why(group, waiting.options));
        return true;
      });
}

void RendezvousGroups::RefuseClaims(Group& group, const std::string& name) {
  if (group.settled_at) return;
  RefuseNamed(group, name, [](const Group& of, const JoinOptions& options) {
    return TooLateOrTwice(options, of.members.size());
  });
}

void RendezvousGroups::Close() {
  const Turn turn(*this);
  closed_ = true;
  const absl::Status closed =
      absl::UnavailableError("the rendezvous has closed");
  for (auto& [cluster, group] : groups_) {
    for (Waiting& waiting : group.waiting) {
      AnswerLater(std::move(waiting.done), closed);
    }
    for (Announced& announced : group.announced) {
      AnswerLater(std::move(announced.done), closed);
    }
    for (auto& [name, member] : group.members) EndListen(member, closed);
  }
  groups_.clear();
}

}  // namespace baton::rpc
