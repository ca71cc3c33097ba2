// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The members of one cluster: how they get their ranks, what they are told, and
// how they leave and come back.
#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/shown_time.h"
#include "core/status.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/rendezvous_groups.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

// The log keeps this many changes, plus one per member.
constexpr size_t kChanges = 64;

absl::Status PlaceIsTaken(const wire::JoinRequest& seat) {
  return absl::NotFoundError(
      absl::StrCat("the place of worker ", seat.self().name(), " in cluster ",
                   seat.cluster(), " is another one's by now"));
}

absl::Status HasGone() { return absl::CancelledError("the worker has gone"); }

}  // namespace

void MembershipLog::Add(uint64_t version, Change change, SharedWorker worker,
                        size_t most, const std::string& why) {
  // The log begins at the first version; no member has an earlier list.
  if (entries_.empty()) oldest_ = version;
  entries_.push_back({version, change, std::move(worker), why});
  while (entries_.size() > most) {
    oldest_ = entries_.front().version;
    entries_.pop_front();
  }
}

std::optional<wire::RenewAnswer> MembershipLog::Since(uint64_t known) const {
  if (entries_.empty() || known < oldest_ || known > entries_.back().version) {
    return std::nullopt;
  }
  wire::RenewAnswer changed;
  changed.set_version(entries_.back().version);
  std::unordered_set<uint64_t> seen;
  for (auto it = entries_.rbegin();
       it != entries_.rend() && it->version > known; ++it) {
    if (!seen.insert(it->worker->incarnation()).second) continue;
    if (it->change == Change::kJoined) {
      *changed.add_members() = *it->worker;
      continue;
    }
    wire::Departure& departed = *changed.add_departed();
    departed.set_name(it->worker->name());
    departed.set_incarnation(it->worker->incarnation());
    departed.set_lost(it->change == Change::kLost);
    departed.set_why(it->why);
  }
  std::reverse(changed.mutable_members()->begin(),
               changed.mutable_members()->end());
  std::reverse(changed.mutable_departed()->begin(),
               changed.mutable_departed()->end());
  return changed;
}

bool RendezvousGroup::Has(const std::string& name, uint64_t incarnation) const {
  const auto member = members_.find(name);
  return member != members_.end() &&
         member->second.info->incarnation() == incarnation;
}

void RendezvousGroup::List(
    google::protobuf::RepeatedPtrField<wire::Worker>* members) const {
  for (const auto& [name, member] : members_) *members->Add() = *member.info;
  std::sort(members->begin(), members->end(),
            [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
}

int RendezvousGroup::Counted() const {
  return static_cast<int>(
      std::count_if(members_.begin(), members_.end(), [this](const auto& each) {
        return each.second.info->rank() < world_size_;
      }));
}

bool RendezvousGroup::Refuse(
    const std::function<absl::Status(const Waiting&)>& why) {
  for (Waiting& each : waiting_) {
    const absl::Status status = why(each);
    if (!status.ok())
      shared_.AnswerLater(std::exchange(each.done, nullptr), status);
  }
  return std::erase_if(waiting_, [](const Waiting& each) {
           return each.done == nullptr;
         }) > 0;
}

bool RendezvousGroup::RefuseNamed(const std::string& name,
                                  const absl::Status& why) {
  return Refuse([&](const Waiting& each) {
    return each.request->self().name() == name ? why : absl::OkStatus();
  });
}

void RendezvousGroup::EndWait(const std::string& name, uint64_t incarnation) {
  Refuse([&](const Waiting& each) {
    const wire::Worker& self = each.request->self();
    const bool is_it = self.name() == name && self.incarnation() == incarnation;
    return is_it ? HasGone() : absl::OkStatus();
  });
  if (Has(name, incarnation)) EndRenewal(members_[name]);
}

// The waiting workers were admitted without regard to the members that stay, so
// each is admitted anew.
void RendezvousGroup::Settle(Clock::time_point now) {
  settles_.reset();
  if (std::exchange(returning_, false)) TellListeners();
  for (Waiting& next : std::exchange(waiting_, {})) {
    AdmitOrRefuse(std::move(next), now);
  }
}

void RendezvousGroup::SeatIfAllCame(Clock::time_point now) {
  if (waiting_.empty() || settles_) return;
  for (const Waiting& each : waiting_) {
    if (members_.contains(each.request->self().name())) return;
  }
  int there = Counted();
  for (const Waiting& each : waiting_) {
    if (IsOneMore(*each.request)) continue;
    if (members_.empty()) world_size_ = each.request->world_size();
    ++there;
  }
  const bool all = there > 0 && there == world_size_;
  if (all || !members_.empty()) Seat(all, now);
}

std::vector<RendezvousGroup::Waiting> RendezvousGroup::TakeSeated(bool all) {
  const auto first = std::stable_partition(
      waiting_.begin(), waiting_.end(),
      [&](const Waiting& each) { return !all && !IsOneMore(*each.request); });
  std::vector<Waiting> seated(std::make_move_iterator(first),
                              std::make_move_iterator(waiting_.end()));
  waiting_.erase(first, waiting_.end());
  // Workers that the cluster waits for come before those that join as one more,
  // and those that want a rank before those that take any.
  const auto order = [](const Waiting& each) {
    return std::pair(IsOneMore(*each.request), each.request->self().rank() < 0);
  };
  std::stable_sort(
      seated.begin(), seated.end(),
      [&](const Waiting& a, const Waiting& b) { return order(a) < order(b); });
  while (!seated.empty() && !HasRoomFor(seated.size())) {
    shared_.AnswerLater(
        std::move(seated.back().done),
        absl::ResourceExhaustedError(absl::StrCat(
            "cluster ", cluster_, " has ", shared_.max_members,
            " members, trainers counted, as many as its rendezvous admits ",
            kLimit, "; worker ", seated.back().request->self().name(),
            " may join once one of them has gone")));
    seated.pop_back();
  }
  return seated;
}

void RendezvousGroup::Seat(bool all, Clock::time_point now) {
  std::vector<Waiting> seated = TakeSeated(all);
  if (seated.empty()) return;
  std::set<int> taken;
  for (const auto& [name, member] : members_) taken.insert(member.info->rank());
  const auto joined = std::make_shared<wire::JoinAnswer>();
  joined->set_version(shared_.version + seated.size());
  for (Waiting& each : seated) {
    const wire::JoinRequest& request = *each.request;
    int rank =
        std::max(request.self().rank(), IsOneMore(request) ? world_size_ : 0);
    while (!taken.insert(rank).second) ++rank;
    AddMember(request, rank, joined->version(), now);
    const milliseconds lease(request.lease_ms());
    const auto longest =
        lease.count() == 0 ? kHearing : std::min(kHearing, lease / 2);
    announced_.push_back(
        {each.answer, std::move(each.done), joined, now + longest});
  }
  List(joined->mutable_members());
  doubled_.clear();
  TellListeners();
  LetInAnnounced(now);
}

void RendezvousGroup::AddMember(const wire::JoinRequest& request, int rank,
                                uint64_t known, Clock::time_point now) {
  // Without the fields that this version does not know, whose size nobody
  // checks.
  const auto info = std::make_shared<wire::Worker>();
  info->set_name(request.self().name());
  info->set_rank(rank);
  info->set_incarnation(request.self().incarnation());
  info->set_address(request.self().address());
  info->set_compute(request.self().compute());
  members_[info->name()] = {.info = info,
                            .lease = milliseconds(request.lease_ms()),
                            .heard = now,
                            .listens = request.listens(),
                            .known = known};
  Changed(MembershipLog::Change::kJoined, info);
}

void RendezvousGroup::LetInAnnounced(Clock::time_point now) {
  if (announced_.empty()) return;
  uint64_t heard = version_;
  for (const auto& [name, member] : members_) {
    if (member.listens) heard = std::min(heard, member.known);
  }
  std::erase_if(announced_, [&](Announced& each) {
    if (heard < each.joined->version() && now < each.until) return false;
    shared_.answers.push_back([each = std::move(each)] {
      *each.answer = *each.joined;
      each.done(absl::OkStatus());
    });
    return true;
  });
}

void RendezvousGroup::Changed(MembershipLog::Change change,
                              const SharedWorker& worker,
                              const std::string& why) {
  version_ = ++shared_.version;
  log_.Add(version_, change, worker, members_.size() + kChanges, why);
}

wire::RenewAnswer RendezvousGroup::Since(uint64_t known) const {
  wire::RenewAnswer change;
  change.set_version(known);
  // Members that are not back yet have not left.
  if (returning_) return change;
  if (auto changed = log_.Since(known)) return *std::move(changed);
  change.set_version(version_);
  change.set_whole(true);
  List(change.mutable_members());
  return change;
}

RendezvousGroup::Members::iterator RendezvousGroup::Erase(
    Members::iterator member, MembershipLog::Change how,
    const std::string& why) {
  const SharedWorker gone = member->second.info;
  EndRenewal(member->second,
             absl::NotFoundError(absl::StrCat("worker ", gone->name(),
                                              " is no member any more")));
  const auto next = members_.erase(member);
  Changed(how, gone, why);
  return next;
}

void RendezvousGroup::EndRenewal(Member& member, const absl::Status& status) {
  if (member.done != nullptr) {
    shared_.AnswerLater(std::exchange(member.done, nullptr), status);
  }
}

void RendezvousGroup::TellListeners() {
  if (returning_) return;
  for (auto& [name, member] : members_) {
    if (member.done == nullptr || member.known == version_) continue;
    *member.answer = Since(member.known);
    EndRenewal(member);
  }
}

void RendezvousGroup::TellOfLosses(Clock::time_point now) {
  TellListeners();
  LetInAnnounced(now);
  if (settles_ && members_.empty()) return Settle(now);
  SeatIfAllCame(now);
}

void RendezvousGroup::Renew(const std::string& name, uint64_t known,
                            Clock::time_point until, wire::RenewAnswer* answer,
                            Done done, Clock::time_point now) {
  Member& member = members_.at(name);
  EndRenewal(member);  // of two that wait, the earlier one is ended
  RefuseClaims(name);
  *answer = Since(known);
  member.heard = now;
  member.known = known;
  member.answer = answer;
  member.done = std::move(done);
  member.until = until;
  if (until > now) member.listens = true;
  LetInAnnounced(now);
  if (answer->version() != known || until <= now) EndRenewal(member);
}

absl::Status RendezvousGroup::TakeBack(const wire::JoinRequest& seat,
                                       uint64_t known, Clock::time_point now) {
  if (members_.empty()) {
    if (known != 0) RETURN_IF_ERROR(CheckReturnToNobody(seat));
    if (IsOneMore(seat)) {
      return absl::UnavailableError(
          absl::StrCat("nobody of cluster ", cluster_, " has come back yet"));
    }
    world_size_ = seat.world_size();
    returning_ = true;
  }
  if (!IsFree(seat)) return PlaceIsTaken(seat);
  AddMember(seat, seat.self().rank(), known, now);
  if (returning_) {
    settles_ = now + std::max(milliseconds(seat.lease_ms()), kSettling);
  }
  RefuseClaims(seat.self().name());
  if (!settles_ && Counted() == world_size_) {
    Refuse([this](const Waiting& each) {
      return IsOneMore(*each.request)
                 ? absl::OkStatus()
                 : TooLateOrTwice(each.request->self().name());
    });
  }
  TellListeners();
  LogInfo("cluster ", cluster_, ": worker ", seat.self().name(), " is back");
  return absl::OkStatus();
}

absl::Status RendezvousGroup::CheckReturnToNobody(
    const wire::JoinRequest& seat) const {
  if (shared_.struck_off.Find(seat.self().incarnation()) == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("cluster ", cluster_, " has ended"));
  }
  for (const Waiting& each : waiting_) {
    const wire::JoinRequest& other = *each.request;
    if (other.self().name() == seat.self().name() ||
        other.self().rank() == seat.self().rank() ||
        (!IsOneMore(other) && other.world_size() != seat.world_size())) {
      return PlaceIsTaken(seat);
    }
  }
  return absl::OkStatus();
}

bool RendezvousGroup::IsFree(const wire::JoinRequest& seat) const {
  const int rank = seat.self().rank();
  const bool fits =
      IsOneMore(seat) ? rank >= world_size_ : seat.world_size() == world_size_;
  return fits && HasRoomFor(1) && !members_.contains(seat.self().name()) &&
         std::none_of(members_.begin(), members_.end(), [&](const auto& each) {
           return each.second.info->rank() == rank;
         });
}

void RendezvousGroup::Leave(const std::string& name, Clock::time_point now) {
  Erase(members_.find(name), MembershipLog::Change::kLeft);
  settles_ = std::max(settles_.value_or(now), now + kSettling);
  TellOfLosses(now);
}

void RendezvousGroup::StrikeOff(const std::string& name, const std::string& why,
                                Clock::time_point now) {
  RefuseNamed(name, HasGone());
  const auto member = members_.find(name);
  if (member == members_.end()) return;
  Erase(member, MembershipLog::Change::kLost, why);
  TellOfLosses(now);
}

void RendezvousGroup::Reap(Clock::time_point now, Clock::duration stopped) {
  if (settles_) *settles_ += stopped;
  const size_t before = size();
  for (auto it = members_.begin(); it != members_.end();) {
    Member& member = it->second;
    member.heard += stopped;
    if (now >= member.until) EndRenewal(member);
    if (member.lease.count() == 0 || now - member.heard <= member.lease) {
      ++it;
      continue;
    }
    LogWarning("cluster ", cluster_, ": worker ", it->first,
               " is struck off, not heard for its lease of ",
               ShownTime(member.lease));
    shared_.struck_off.Add(member.info->incarnation(), {});
    it = Erase(it, MembershipLog::Change::kLost);
  }
  if (size() < before) TellOfLosses(now);
  if (settles_ && now >= *settles_) Settle(now);
  std::erase_if(doubled_, [now](const auto& doubled) {
    return now - doubled.second >= kSettling;
  });
  Refuse([&](const Waiting& each) {
    return now < each.until ? absl::OkStatus() : SomeAreMissing(*each.request);
  });
  // Whoever was refused since the last time may have kept others waiting.
  SeatIfAllCame(now);
  LetInAnnounced(now);
}

void RendezvousGroup::Close(const absl::Status& why) {
  Refuse([&](const Waiting&) { return why; });
  for (Announced& each : announced_) {
    shared_.AnswerLater(std::move(each.done), why);
  }
  for (auto& [name, member] : members_) EndRenewal(member, why);
}

}  // namespace baton::rpc
