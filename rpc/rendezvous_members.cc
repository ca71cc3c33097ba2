// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/shown_time.h"
#include "core/status.h"
#include "rpc/rendezvous_groups.h"
#include "rpc/rendezvous_messages.h"

// The members of clusters that have met: their leases, what they are told, and
// how they leave and come back.
namespace baton::rpc {
namespace {

// The log keeps this many changes, plus one per member.
constexpr size_t kChanges = 64;

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

void RendezvousGroups::EndListen(
    Member& member, std::optional<absl::StatusOr<MembershipChange>> change) {
  if (!member.listener) return;
  if (!change) change = MembershipChange{.version = member.listener->known};
  answers_.push_back([heard = std::move(member.listener->heard),
                      change = *std::move(change)] { heard(change); });
  member.listener.reset();
}

void RendezvousGroups::EndListen(const std::string& cluster,
                                 const std::string& name,
                                 uint64_t incarnation) {
  const Turn turn(*this);
  Member* member = FindMember(cluster, name, incarnation);
  if (member != nullptr) EndListen(*member);
}

void RendezvousGroups::TellListeners(Group& group) {
  if (group.restoring) return;
  for (auto& [name, member] : group.members) {
    if (!member.listener || member.listener->known == group.version) continue;
    EndListen(member, group.Since(member.listener->known));
  }
}

void RendezvousGroups::LetInAnnounced(
    Group& group, const std::function<bool(Announced&)>& may_enter) {
  std::erase_if(group.announced,
                [&](Announced& announced) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                  if (!may_enter(announced)) return false;
                  AnswerLater(std::move(announced.done), announced.joined);
                  return true;
                });
}

void RendezvousGroups::HasHeard(Group& group, const std::string& name,
                                uint64_t known) {
  LetInAnnounced(group, [&](Announced& announced) {
    if (known < announced.joined->version) return false;
    announced.unheard.erase(name);
    return announced.unheard.empty();
  });
}

void RendezvousGroups::TellOfLosses(Group& group) {
  TellListeners(group);
  if (group.settled_at && group.members.empty()) {
    Settle(group);
  } else {
    CompleteIfAllCame(group);
  }
}

void RendezvousGroups::Renew(const std::string& cluster,
                             const std::string& name, uint64_t incarnation,
                             uint64_t known, Clock::time_point until,
                             Heard heard, Clock::time_point now) {
  const Turn turn(*this);
  Member* member = FindMember(cluster, name, incarnation);
  if (member == nullptr) {
    // A closed rendezvous has lost its list, so it must not tell members that
    // they were struck off.
    absl::Status why =
        closed_ ? absl::UnavailableError("the rendezvous has closed")
                : absl::NotFoundError(absl::StrCat("cluster ", cluster,
                                                   " has no such worker ", name,
                                                   " any more"));
    answers_.push_back(
        [heard = std::move(heard), why = std::move(why)] { heard(why); });
    return;
  }
  known = OfThisLife(known);
  Group& group = groups_[cluster];
  member->heard = now;
  EndListen(*member);  // of two calls that wait, the earlier one is ended
  RefuseClaims(group, name);
  HasHeard(group, name, known);
  MembershipChange change = group.Since(known);
  if (until > now) member->listens = true;
  member->listener = {known, until, std::move(heard)};
  if (change.version != known || until <= now) {
    EndListen(*member, std::move(change));
  }
}

uint64_t RendezvousGroups::OfThisLife(uint64_t version) const {
  return version >= first_version_ && version <= versions_ ? version : 0;
}

absl::Status RendezvousGroups::TakeBack(const JoinOptions& seat, uint64_t known,
                                        Clock::time_point now) {
  const std::string& name = seat.self.name;
  const Turn turn(*this);
  if (FindMember(seat.cluster, name, seat.self.incarnation) != nullptr) {
    return absl::OkStatus();
  }
  known = OfThisLife(known);
  RETURN_IF_ERROR(CheckReturn(seat));
  RETURN_IF_ERROR(OpenGroup(seat.cluster));
  const auto found = groups_.find(seat.cluster);
  const bool met = found != groups_.end() && !found->second.members.empty();
  if (!met && known != 0) RETURN_IF_ERROR(CheckReturnToNobody(seat));
  if (!met && seat.world_size == kOneMore) {
    return absl::UnavailableError(
        absl::StrCat("nobody of cluster ", seat.cluster, " has come back yet"));
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
  const Turn turn(*this);
  if (FindMember(cluster, name, incarnation) == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("cluster ", cluster, " has no worker ", name));
  }
  const auto found = groups_.find(cluster);
  Group& group = found->second;
  Erase(group, group.members.find(name), MembershipLog::Change::kLeft);
  group.settled_at = std::max(group.settled_at.value_or(now), now + kSettling);
  TellOfLosses(group);
  if (group.Empty()) groups_.erase(found);
  return absl::OkStatus();
}

void RendezvousGroups::StrikeOff(const std::string& name,
                                 const std::string& why) {
  const Turn turn(*this);
  for (auto it = groups_.begin(); it != groups_.end();) {
    Group& group = it->second;
    RefuseNamed(group, name, [](const Group&, const JoinOptions&) {
      return absl::CancelledError("the worker has gone");
    });
    const auto member = group.members.find(name);
    if (member != group.members.end()) {
      Erase(group, member, MembershipLog::Change::kLost, why);
      TellOfLosses(group);
    }
    it = group.Empty() ? groups_.erase(it) : std::next(it);
  }
}

absl::StatusOr<std::vector<WorkerInfo>> RendezvousGroups::List(
    const std::string& cluster) const {
  MutexLock lock(mutex_);
  const auto found = groups_.find(cluster);
  if (found != groups_.end() && !found->second.members.empty())
    return found->second.List();
  std::vector<JoinOptions> waiting;
  if (found != groups_.end()) {
    for (const Waiting& each : found->second.waiting)
      waiting.push_back(each.options);
  }
  constexpr size_t kNamed = 5;
  std::vector<std::string> met;
  for (const auto& [name, group] : groups_) {
    const size_t size = group.members.size();
    if (size > 0 && met.size() < kNamed)
      met.push_back(absl::StrCat("cluster ", name, " (", size,
                                 size == 1 ? " worker)" : " workers)"));
  }
  return internal::HasNotMet(cluster, waiting, met);
}

void RendezvousGroups::Reap(Clock::time_point now,
                            std::chrono::milliseconds interval) {
  const Turn turn(*this);
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

void RendezvousGroups::ReapGroup(const std::string& cluster, Group& group,
                                 Clock::time_point now) {
  const size_t before = group.members.size();
  for (auto it = group.members.begin(); it != group.members.end();) {
    Member& member = it->second;
    if (member.listener && now >= member.listener->until) EndListen(member);
    if (member.lease.count() == 0 || now - member.heard <= member.lease) {
      ++it;
      continue;
    }
    LogWarning("cluster ", cluster, ": worker ", it->first,
               " is struck off, not heard for its lease of ",
               ShownTime(member.lease));
    struck_off_.Add(member.info.incarnation, {});
    it = Erase(group, it, MembershipLog::Change::kLost);
  }
  if (group.members.size() < before) TellOfLosses(group);
  if (group.settled_at && now >= *group.settled_at) Settle(group);
  std::erase_if(group.doubled, [now](const auto& doubled) {
    return now - doubled.second >= kSettling;
  });
  LetInAnnounced(group, [now](const Announced& announced) {
    return now >= announced.until;
  });
}

}  // namespace baton::rpc
