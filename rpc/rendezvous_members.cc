// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/rendezvous_groups.h"

// The members of clusters that have met: their leases, what they are told, and
// how they leave and come back.
namespace baton::rpc {
namespace {

// The log keeps this many changes, plus one per member.
constexpr size_t kChanges = 64;
// Of which is known that they were struck off: those of the largest cluster.

absl::Status CheckReturn(const JoinOptions& seat) {
  JoinOptions anywhere = seat;
  anywhere.wanted_rank = -1;
  RETURN_IF_ERROR(internal::CheckJoin(anywhere));
  if (seat.wanted_rank >= 0 &&
      (seat.world_size == kOneMore || seat.wanted_rank < seat.world_size)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("worker ", seat.self.name, " had no rank"));
}

absl::Status PlaceIsTaken(const JoinOptions& seat) {
  return absl::NotFoundError(
      absl::StrCat("the place of worker ", seat.self.name, " in cluster ",
                   seat.cluster, " is another one's by now"));
}

}  // namespace

bool RendezvousGroups::Group::Counts(const WorkerInfo& member) const {
  return static_cast<int>(member.rank) < world_size;
}

int RendezvousGroups::Group::Counted() const {
  return static_cast<int>(std::count_if(
      members.begin(), members.end(),
      [this](const auto& member) { return Counts(member.second.info); }));
}

std::vector<WorkerInfo> RendezvousGroups::Group::List() const {
  std::vector<WorkerInfo> list;
  for (const auto& [name, member] : members) list.push_back(member.info);
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return list;
}

MembershipChange RendezvousGroups::Group::Since(uint64_t known) const {
  // Members that are not back yet have not left.
  if (restoring) return {.version = known};
  if (auto changed = log.Since(known)) return *std::move(changed);
  return {.version = version, .whole = true, .joined = List()};
}

RendezvousGroups::Member* RendezvousGroups::FindMember(
    const std::string& cluster, const std::string& name, uint64_t incarnation) {
  const auto group = groups_.find(cluster);
  if (group == groups_.end()) return nullptr;
  const auto member = group->second.members.find(name);
  if (member == group->second.members.end()) return nullptr;
  return member->second.info.incarnation == incarnation ? &member->second
                                                        : nullptr;
}

void RendezvousGroups::Changed(Group& group, MembershipLog::Change change,
                               const WorkerInfo& worker,
                               const std::string& why) {
  group.version = ++versions_;
  group.log.Add(group.version, change, worker, group.members.size() + kChanges,
                why);
}

RendezvousGroups::Members::iterator RendezvousGroups::Erase(
    Group& group, Members::iterator member, MembershipLog::Change how,
    const std::string& why) {
  const WorkerInfo info = member->second.info;
  EndListen(member->second,
            absl::NotFoundError(
                absl::StrCat("worker ", info.name, " is no member any more")));
  HasHeard(group, info.name, group.version);
  const auto next = group.members.erase(member);
  Changed(group, how, info, why);
  return next;
}

void RendezvousGroups::EndListen(Member& member,
                                 absl::StatusOr<MembershipChange> change) {
  if (!member.listener) return;
  answers_.push_back([heard = std::move(member.listener->heard),
                      change = std::move(change)] { heard(change); });
  member.listener.reset();
}

void RendezvousGroups::EndListen(const std::string& cluster,
                                 const std::string& name,
                                 uint64_t incarnation) {
  {
    MutexLock lock(mutex_);
    Member* member = FindMember(cluster, name, incarnation);
    if (member == nullptr || !member->listener) return;
    EndListen(*member, MembershipChange{.version = member->listener->known});
  }
  GiveAnswers();
}

void RendezvousGroups::TellListeners(Group& group) {
  if (group.restoring) return;
  for (auto& [name, member] : group.members) {
    if (!member.listener || member.listener->known == group.version) continue;
    EndListen(member, group.Since(member.listener->known));
  }
}

void RendezvousGroups::HasHeard(Group& group, const std::string& name,
                                uint64_t known) {
  std::erase_if(group.announced,
                [&](Announced& announced) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                  if (known < announced.joined->version) return false;
                  announced.unheard.erase(name);
                  if (!announced.unheard.empty()) return false;
                  AnswerLater(std::move(announced.done), announced.joined);
                  return true;
                });
}

absl::StatusOr<MembershipChange> RendezvousGroups::RenewLocked(
    const std::string& cluster, const std::string& name, uint64_t incarnation,
    uint64_t known, Clock::time_point now) {
  // A closed rendezvous has lost its list, so it must not tell members that
  // they were struck off.
  if (closed_) return absl::UnavailableError("the rendezvous has closed");
  Member* member = FindMember(cluster, name, incarnation);
  if (member == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "cluster ", cluster, " has no such worker ", name, " any more"));
  }
  Group& group = groups_[cluster];
  member->heard = now;
  // If two calls wait at a time, the earlier one is ended.
  if (member->listener) {
    EndListen(*member, MembershipChange{.version = member->listener->known});
  }
  RefuseClaims(group, name);
  HasHeard(group, name, known);
  return group.Since(known);
}

absl::StatusOr<MembershipChange> RendezvousGroups::Renew(
    const std::string& cluster, const std::string& name, uint64_t incarnation,
    uint64_t known, Clock::time_point now) {
  absl::StatusOr<MembershipChange> change = MembershipChange();
  {
    MutexLock lock(mutex_);
    change = RenewLocked(cluster, name, incarnation, known, now);
  }
  GiveAnswers();
  return change;
}

void RendezvousGroups::Listen(const std::string& cluster,
                              const std::string& name, uint64_t incarnation,
                              uint64_t known, Clock::time_point until,
                              Heard heard, Clock::time_point now) {
  {
    MutexLock lock(mutex_);
    auto change = RenewLocked(cluster, name, incarnation, known, now);
    if (change.ok()) {
      Member& member = groups_[cluster].members.at(name);
      member.listens = true;
      member.listener = {known, until, std::move(heard)};
      if (change->version != known || now >= until) {
        EndListen(member, *std::move(change));
      }
    } else {
      answers_.push_back([heard = std::move(heard), status = change.status()] {
        heard(status);
      });
    }
  }
  GiveAnswers();
}

absl::Status RendezvousGroups::TakeBack(const JoinOptions& seat, uint64_t known,
                                        Clock::time_point now) {
  const std::string& name = seat.self.name;
  const bool one_more = seat.world_size == kOneMore;
  {
    MutexLock lock(mutex_);
    if (FindMember(seat.cluster, name, seat.self.incarnation) != nullptr) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(CheckReturn(seat));
    RETURN_IF_ERROR(OpenGroup(seat.cluster));
    const auto found = groups_.find(seat.cluster);
    const bool met = found != groups_.end() && !found->second.members.empty();
    if (!met && known >= first_version_)
      RETURN_IF_ERROR(CheckReturnToNobody(seat));
    if (!met && one_more) {
      return absl::UnavailableError(absl::StrCat(
          "nobody of cluster ", seat.cluster, " has come back yet"));
    }
    Group& group = groups_[seat.cluster];
    if (!met) {
      group.world_size = seat.world_size;
      group.restoring = true;
    }
    RETURN_IF_ERROR(CheckSeat(group, seat));
    Seat(group, seat, seat.wanted_rank, now);
    if (group.restoring) {
      group.settled_at = now + std::max(seat.lease, kSettling);
    }
    RefuseClaims(group, name);
    TellListeners(group);
    LogInfo("cluster ", seat.cluster, ": worker ", name, " is back");
  }
  GiveAnswers();
  return absl::OkStatus();
}

absl::Status RendezvousGroups::CheckReturnToNobody(
    const JoinOptions& seat) const {
  if (struck_off_.Find(seat.self.incarnation) == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("cluster ", seat.cluster, " has ended"));
  }
  const auto group = groups_.find(seat.cluster);
  if (group == groups_.end()) return absl::OkStatus();
  for (const Waiting& waiting : group->second.waiting) {
    const JoinOptions& other = waiting.options;
    if (other.self.name == seat.self.name ||
        other.wanted_rank == seat.wanted_rank ||
        (other.world_size != kOneMore && other.world_size != seat.world_size)) {
      return PlaceIsTaken(seat);
    }
  }
  return absl::OkStatus();
}

absl::Status RendezvousGroups::CheckSeat(const Group& group,
                                         const JoinOptions& seat) const {
  const bool fits = seat.world_size == kOneMore
                        ? seat.wanted_rank >= group.world_size
                        : seat.world_size == group.world_size;
  const bool taken =
      group.members.contains(seat.self.name) ||
      std::any_of(group.members.begin(), group.members.end(),
                  [&](const auto& member) {
                    return member.second.info.rank == Rank{seat.wanted_rank};
                  });
  return fits && !taken && !IsFull(group) ? absl::OkStatus()
                                          : PlaceIsTaken(seat);
}

absl::Status RendezvousGroups::Leave(const std::string& cluster,
                                     const std::string& name,
                                     uint64_t incarnation,
                                     Clock::time_point now) {
  {
    MutexLock lock(mutex_);
    if (FindMember(cluster, name, incarnation) == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("cluster ", cluster, " has no worker ", name));
    }
    const auto found = groups_.find(cluster);
    Group& group = found->second;
    Erase(group, group.members.find(name), MembershipLog::Change::kLeft);
    group.settled_at =
        std::max(group.settled_at.value_or(now), now + kSettling);
    TellListeners(group);
    SeatSuccessors(group);
    if (group.Empty()) groups_.erase(found);
  }
  GiveAnswers();
  return absl::OkStatus();
}

void RendezvousGroups::StrikeOff(const std::string& name,
                                 const std::string& why) {
  {
    MutexLock lock(mutex_);
    for (auto it = groups_.begin(); it != groups_.end();) {
      Group& group = it->second;
      std::erase_if(group.waiting,
                    [&](Waiting& waiting) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                      if (waiting.options.self.name != name) return false;
                      AnswerLater(std::move(waiting.done),
                                  absl::CancelledError("the worker has gone"));
                      return true;
                    });
      const auto member = group.members.find(name);
      if (member != group.members.end()) {
        Erase(group, member, MembershipLog::Change::kLost, why);
        TellListeners(group);
        SeatSuccessors(group);
      }
      it = group.Empty() ? groups_.erase(it) : std::next(it);
    }
  }
  GiveAnswers();
}

absl::StatusOr<std::vector<WorkerInfo>> RendezvousGroups::List(
    const std::string& cluster) const {
  MutexLock lock(mutex_);
  auto found = groups_.find(cluster);
  if (found == groups_.end() || found->second.members.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no cluster ", cluster, " has met here"));
  }
  return found->second.List();
}

void RendezvousGroups::Reap(Clock::time_point now,
                            std::chrono::milliseconds interval) {
  {
    MutexLock lock(mutex_);
    const auto stopped = now - reaped_ - interval;
    reaped_ = now;
    for (auto it = groups_.begin(); it != groups_.end();) {
      Group& group = it->second;
      if (stopped > interval) {
        for (auto& [name, member] : group.members) member.heard += stopped;
        if (group.settled_at) *group.settled_at += stopped;
      }
      ReapGroup(it->first, group, now);
      it = group.Empty() ? groups_.erase(it) : std::next(it);
    }
  }
  GiveAnswers();
}

void RendezvousGroups::ReapGroup(const std::string& cluster, Group& group,
                                 Clock::time_point now) {
  const size_t before = group.members.size();
  for (auto it = group.members.begin(); it != group.members.end();) {
    Member& member = it->second;
    if (member.listener && now >= member.listener->until) {
      EndListen(member, MembershipChange{.version = member.listener->known});
    }
    if (member.lease.count() == 0 || now - member.heard <= member.lease) {
      ++it;
      continue;
    }
    LogWarning("cluster ", cluster, ": worker ", it->first,
               " is struck off, not heard for its lease of ",
               member.lease.count(), " ms");
    struck_off_.Add(member.info.incarnation, {});
    it = Erase(group, it, MembershipLog::Change::kLost);
  }
  if (group.members.size() < before) {
    TellListeners(group);
    SeatSuccessors(group);
  }
  if (group.settled_at && now >= *group.settled_at) Settle(group);
  std::erase_if(group.doubled, [now](const auto& doubled) {
    return now - doubled.second >= kSettling;
  });
  std::erase_if(group.announced,
                [&](Announced& announced) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                  if (now < announced.until) return false;
                  AnswerLater(std::move(announced.done), announced.joined);
                  return true;
                });
}

}  // namespace baton::rpc
