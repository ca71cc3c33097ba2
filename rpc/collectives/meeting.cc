// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/meeting.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace baton::rpc {
namespace {

bool IsSame(const WorkerInfo& a, const WorkerInfo& b) {
  return a.name == b.name && a.incarnation == b.incarnation;
}

bool AreSame(const std::vector<WorkerInfo>& a,
             const std::vector<WorkerInfo>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!IsSame(a[i], b[i])) return false;
  return true;
}

std::string NamesOf(const std::vector<WorkerInfo>& workers) {
  return absl::StrJoin(workers, ", ", [](std::string* out, const auto& each) {
    absl::StrAppend(out, each.name);
  });
}

}  // namespace

void GroupMeetings::Ended::Tell() const {
  for (const auto& [seat, joined] : meeting.joined) joined.promise.Set(result);
}

Future<GroupRoster> GroupMeetings::Join(GroupRequest request) {
  const auto refused = [](const std::string& why) {
    return ReadyFuture<GroupRoster>(absl::InvalidArgumentError(why));
  };
  const auto seats = static_cast<int32_t>(request.seats.size());
  if (request.seat < 0 || request.seat >= seats)
    return refused("a member of a group without a seat");
  Promise<GroupRoster> promise;
  std::vector<Ended> ended;
  {
    MutexLock lock(mutex_);
    Meeting& meeting = meetings_[request.key];
    if (meeting.joined.empty()) {
      meeting.seats = request.seats;
      meeting.survivors = request.survivors;
    } else if (!AreSame(meeting.seats, request.seats)) {
      return refused(absl::StrCat(
          "the members of a group must be the same for all: ",
          NamesOf(request.seats), " here, ", NamesOf(meeting.seats), " there"));
    }
    // A member's new attempt replaces its earlier one.
    meeting.joined[request.seat] = {std::move(request.hello), promise};
    ended = EndLocked();
  }
  for (const Ended& each : ended) each.Tell();
  return promise.future();
}

std::vector<GroupMeetings::Ended> GroupMeetings::EndLocked() {
  std::vector<Ended> ended;
  for (auto it = meetings_.begin(); it != meetings_.end();) {
    const Meeting& meeting = it->second;
    GroupRoster roster;
    absl::Status lost;
    bool all_here = true;
    for (size_t i = 0; i < meeting.seats.size(); ++i) {
      const auto seat = static_cast<int32_t>(i);
      const absl::Status why = WhyLostLocked(meeting.seats[i]);
      const auto found = meeting.joined.find(seat);
      if (!why.ok()) {
        if (lost.ok()) lost = why;
      } else if (found == meeting.joined.end()) {
        all_here = false;
      } else {
        roster.seats.push_back(seat);
        roster.hellos.push_back(found->second.hello);
      }
    }
    const bool fails = !lost.ok() && !meeting.survivors;
    if (!fails && !all_here) {
      ++it;
      continue;
    }
    ResultOf<GroupRoster> result(std::move(roster));
    if (fails) result = lost;
    ended.push_back({std::move(it->second), std::move(result)});
    it = meetings_.erase(it);
  }
  return ended;
}

void GroupMeetings::Expire(const std::string& key, uint64_t ticket) {
  std::optional<Ended> ended;
  {
    MutexLock lock(mutex_);
    const auto found = meetings_.find(key);
    if (found == meetings_.end()) return;
    Meeting& meeting = found->second;
    bool waits = false;
    for (const auto& [seat, joined] : meeting.joined)
      waits = waits || joined.hello.ticket == ticket;
    if (!waits) return;
    std::vector<WorkerInfo> missing;
    for (size_t i = 0; i < meeting.seats.size(); ++i)
      if (meeting.joined.count(static_cast<int32_t>(i)) == 0)
        missing.push_back(meeting.seats[i]);
    ended = Ended{
        std::move(meeting),
        absl::DeadlineExceededError(absl::StrCat(
            "members of a group that have not come: ", NamesOf(missing)))};
    meetings_.erase(found);
  }
  ended->Tell();
}

void GroupMeetings::OnMember(const MemberEvent& event) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mutex_);
    // A new worker of the same name does not bring back the lost one.
    if (event.kind != MemberEvent::Kind::kJoined) {
      lost_.insert_or_assign(event.worker.name, event);
    } else if (const auto at = lost_.find(event.worker.name);
               at != lost_.end() && IsSame(at->second.worker, event.worker)) {
      lost_.erase(at);
    }
    ended = EndLocked();
  }
  for (const Ended& each : ended) each.Tell();
}

absl::Status GroupMeetings::WhyLost(const WorkerInfo& worker) const {
  MutexLock lock(mutex_);
  return WhyLostLocked(worker);
}

absl::Status GroupMeetings::WhyLostLocked(const WorkerInfo& worker) const {
  const auto found = lost_.find(worker.name);
  if (found == lost_.end() || !IsSame(found->second.worker, worker))
    return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "worker ", worker.name, " is lost: ", found->second.cause.message()));
}

}  // namespace baton::rpc
