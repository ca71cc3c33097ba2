// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_groups.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/shown_time.h"
#include "core/status.h"
#include "rpc/rendezvous.pb.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxClusters = 1000;
constexpr int64_t kLongestListenMs = 60'000;
// The interval at which expired leases are looked for.
constexpr milliseconds kReapInterval{100};

absl::Status Closed() {
  return absl::UnavailableError("the rendezvous has closed");
}

// Checks the place that a worker asks to have back.
absl::Status CheckSeat(wire::JoinRequest& seat) {
  const int rank = seat.self().rank();
  seat.mutable_self()->set_rank(-1);
  RETURN_IF_ERROR(internal::CheckJoin(seat));
  seat.mutable_self()->set_rank(rank);
  if (rank >= 0 && (seat.world_size() == kOneMore || rank < seat.world_size()))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("worker ", seat.self().name(), " had no rank"));
}

}  // namespace

class ABSL_SCOPED_LOCKABLE RendezvousGroups::Turn {
 public:
  explicit Turn(RendezvousGroups& groups, const std::string& cluster = "")
      ABSL_EXCLUSIVE_LOCK_FUNCTION(groups.mutex_)
      : groups_(groups), cluster_(cluster) {
    groups.mutex_.Lock();
  }
  ~Turn() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto group = groups_.groups_.find(cluster_);
    if (group != groups_.groups_.end() && group->second.empty()) {
      groups_.groups_.erase(group);
    }
    const auto answers = std::exchange(groups_.shared_.answers, {});
    groups_.mutex_.Unlock();
    for (const auto& answer : answers) answer();
  }

 private:
  RendezvousGroups& groups_;
  const std::string cluster_;
};

RendezvousGroups::RendezvousGroups(int max_members)
    : first_version_(static_cast<uint64_t>(
          std::chrono::system_clock::now().time_since_epoch() /
          std::chrono::microseconds(1))),
      shared_{.max_members = static_cast<size_t>(std::max(0, max_members)),
              .version = first_version_} {}

RendezvousGroups::~RendezvousGroups() {
  if (timer_ != nullptr) timer_->Stop();
}

RendezvousGroups::Cancel RendezvousGroups::Handle(
    const wire::JoinRequest& request, wire::JoinAnswer* answer, Done done,
    Clock::time_point now) {
  const auto checked = std::make_shared<wire::JoinRequest>(request);
  const absl::Status valid = internal::CheckJoin(*checked);
  const Turn turn(*this, request.cluster());
  const auto group = valid.ok() ? Open(request.cluster()) : valid;
  if (group.ok()) {
    (*group)->Enter(checked, answer, std::move(done), now);
  } else {
    shared_.AnswerLater(std::move(done), group.status());
  }
  return EndWaitOf(request.cluster(), request.self().name(),
                   request.self().incarnation());
}

RendezvousGroups::Cancel RendezvousGroups::Handle(
    const wire::LeaveRequest& request, wire::LeaveAnswer*, Done done,
    Clock::time_point now) {
  const Turn turn(*this, request.cluster());
  Group* group =
      GroupOf(request.cluster(), request.name(), request.incarnation());
  if (group != nullptr) group->Leave(request.name(), now);
  shared_.AnswerLater(std::move(done),
                      group != nullptr
                          ? absl::OkStatus()
                          : absl::NotFoundError(absl::StrCat(
                                "cluster ", request.cluster(),
                                " has no worker ", request.name())));
  return nullptr;
}

RendezvousGroups::Cancel RendezvousGroups::Handle(
    const wire::RenewRequest& request, wire::RenewAnswer* answer, Done done,
    Clock::time_point now) {
  const auto until = now + milliseconds(std::clamp<int64_t>(
                               request.wait_ms(), 0, kLongestListenMs));
  Cancel end =
      EndWaitOf(request.cluster(), request.name(), request.incarnation());
  if (timer_ != nullptr) {
    done = [timer = timer_.get(), id = timer_->At(until, end),
            done = std::move(done)](const absl::Status& status) {
      timer->Cancel(id);
      done(status);
    };
  }
  const Turn turn(*this, request.cluster());
  // A version that another run of a rendezvous gave is none.
  const uint64_t version = request.version();
  const uint64_t known =
      version >= first_version_ && version <= shared_.version ? version : 0;
  const absl::StatusOr<Group*> group = Return(request, known, now);
  if (group.ok()) {
    (*group)->Renew(request.name(), known, until, answer, std::move(done), now);
  } else {
    shared_.AnswerLater(std::move(done), group.status());
  }
  return end;
}

RendezvousGroups::Cancel RendezvousGroups::Handle(
    const wire::ListRequest& request, wire::ListAnswer* answer, Done done,
    Clock::time_point) {
  const Turn turn(*this);
  shared_.AnswerLater(std::move(done), List(request.cluster(), *answer));
  return nullptr;
}

absl::Status RendezvousGroups::List(const std::string& cluster,
                                    wire::ListAnswer& answer) const {
  std::string who = "nobody is here";
  if (const auto group = groups_.find(cluster); group != groups_.end()) {
    if (group->second.size() > 0) {
      group->second.List(answer.mutable_members());
      return absl::OkStatus();
    }
    who = group->second.WhoWaits();
  } else {
    constexpr size_t kNamed = 5;
    std::vector<std::string> met;
    for (const auto& [name, other] : groups_) {
      const size_t size = other.size();
      if (size == 0 || met.size() == kNamed) continue;
      met.push_back(absl::StrCat("cluster ", name, " (", size,
                                 size == 1 ? " worker)" : " workers)"));
    }
    if (!met.empty()) {
      who = "nobody of it is here; others have: " + absl::StrJoin(met, ", ");
    }
  }
  return absl::NotFoundError(
      absl::StrCat("no cluster ", cluster, " has met here: ", who));
}

absl::StatusOr<RendezvousGroup*> RendezvousGroups::Open(
    const std::string& cluster) {
  if (closed_) return Closed();
  if (groups_.size() >= kMaxClusters && !groups_.contains(cluster)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the rendezvous serves ", kMaxClusters,
                     " clusters already; start another one"));
  }
  return &groups_.try_emplace(cluster, cluster, shared_).first->second;
}

RendezvousGroup* RendezvousGroups::GroupOf(const std::string& cluster,
                                           const std::string& name,
                                           uint64_t incarnation) {
  const auto group = groups_.find(cluster);
  return group != groups_.end() && group->second.Has(name, incarnation)
             ? &group->second
             : nullptr;
}

absl::StatusOr<RendezvousGroup*> RendezvousGroups::Return(
    const wire::RenewRequest& request, uint64_t known, Clock::time_point now) {
  // A closed rendezvous has lost its list, so it must not tell members that
  // they were struck off.
  if (closed_) return Closed();
  Group* group =
      GroupOf(request.cluster(), request.name(), request.incarnation());
  if (group != nullptr) return group;
  if (!request.has_seat()) {
    return absl::NotFoundError(absl::StrCat("cluster ", request.cluster(),
                                            " has no such worker ",
                                            request.name(), " any more"));
  }
  wire::JoinRequest seat = request.seat();
  seat.set_cluster(request.cluster());
  seat.mutable_self()->set_name(request.name());
  seat.mutable_self()->set_incarnation(request.incarnation());
  RETURN_IF_ERROR(CheckSeat(seat));
  ASSIGN_OR_RETURN(group, Open(request.cluster()));
  RETURN_IF_ERROR(group->TakeBack(seat, known, now));
  return group;
}

RendezvousGroups::Cancel RendezvousGroups::EndWaitOf(const std::string& cluster,
                                                     const std::string& name,
                                                     uint64_t incarnation) {
  return [this, cluster, name, incarnation] {
    const Turn turn(*this, cluster);
    const auto group = groups_.find(cluster);
    if (group != groups_.end()) group->second.EndWait(name, incarnation);
  };
}

void RendezvousGroups::StrikeOff(const std::string& name,
                                 const std::string& why) {
  const Turn turn(*this);
  const auto now = Clock::now();
  for (auto& [cluster, group] : groups_) group.StrikeOff(name, why, now);
  EraseEmpty();
}

void RendezvousGroups::Reap(Clock::time_point now, milliseconds interval) {
  const Turn turn(*this);
  auto stopped = now - reaped_ - interval;
  if (stopped <= interval) stopped = Clock::duration(0);
  reaped_ = now;
  for (auto& [cluster, group] : groups_) group.Reap(now, stopped);
  EraseEmpty();
}

void RendezvousGroups::EraseEmpty() {
  std::erase_if(groups_, [](const auto& each) { return each.second.empty(); });
}

void RendezvousGroups::KeepReaping() {
  timer_ = std::make_unique<Timer>("baton-join");
  ReapLater();
}

void RendezvousGroups::ReapLater() {
  timer_->After(kReapInterval, [this] {
    Reap(Clock::now(), kReapInterval);
    ReapLater();
  });
}

void RendezvousGroups::Close() {
  const Turn turn(*this);
  closed_ = true;
  for (auto& [cluster, group] : groups_) group.Close(Closed());
  groups_.clear();
}

bool RendezvousGroup::IsOneMore(const wire::JoinRequest& request) {
  return request.world_size() == kOneMore;
}

std::string RendezvousGroup::WhoWaits() const {
  std::set<std::string> names;
  for (const Waiting& each : waiting_) {
    if (!IsOneMore(*each.request)) return WhoCame(*each.request, "");
    names.insert(each.request->self().name());
  }
  return absl::StrJoin(names, ", ") + " may join once it has";
}

std::string RendezvousGroup::WhoCame(const wire::JoinRequest& request,
                                     const std::string& within) const {
  std::set<std::string> came;
  for (const auto& [name, member] : members_) {
    if (!settles_ && member.info->rank() < world_size_) came.insert(name);
  }
  for (const Waiting& each : waiting_) {
    if (!IsOneMore(*each.request)) came.insert(each.request->self().name());
  }
  std::vector<std::string> missing;
  for (const std::string& name : request.expected()) {
    if (!came.contains(name)) missing.push_back(name);
  }
  if (missing.empty()) {
    const auto count = static_cast<int>(came.size());
    missing.push_back(absl::StrCat(request.world_size() - count, " more"));
  }
  return absl::StrCat(came.size(), " of ", request.world_size(),
                      " workers came", within, " (", absl::StrJoin(came, ", "),
                      "); missing: ", absl::StrJoin(missing, ", "));
}

absl::Status RendezvousGroup::SomeAreMissing(
    const wire::JoinRequest& request) const {
  const std::string time = ShownTime(milliseconds(request.timeout_ms()));
  return absl::DeadlineExceededError(
      IsOneMore(request)
          ? absl::StrCat("cluster ", cluster_, " has not met within ", time,
                         "; worker ", request.self().name(),
                         " can join it once it has")
          : absl::StrCat("cluster ", cluster_, ": ",
                         WhoCame(request, " within " + time)));
}

absl::Status RendezvousGroup::TooLateOrTwice(const std::string& name) const {
  return absl::AlreadyExistsError(absl::StrCat(
      "cluster ", cluster_, " is complete with ", size(), " workers; worker ",
      name,
      " came too late or twice; with another name it may join as one more "
      "(--extra)"));
}

void RendezvousGroup::Enter(std::shared_ptr<const wire::JoinRequest> request,
                            wire::JoinAnswer* answer, Done done,
                            Clock::time_point now) {
  const auto until = now + milliseconds(request->timeout_ms());
  AdmitOrRefuse({std::move(request), answer, std::move(done), until}, now);
}

void RendezvousGroup::AdmitOrRefuse(Waiting waiting, Clock::time_point now) {
  const absl::Status status = Admit(*waiting.request, now);
  if (!status.ok()) return shared_.AnswerLater(std::move(waiting.done), status);
  waiting_.push_back(std::move(waiting));
  SeatIfAllCame(now);
}

absl::Status RendezvousGroup::Admit(const wire::JoinRequest& request,
                                    Clock::time_point now) {
  const std::string& name = request.self().name();
  const int wanted = request.self().rank();
  const auto most = static_cast<int>(shared_.max_members);
  if (most > 0 && request.world_size() > most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "worker ", name, " expects a cluster of ", request.world_size(),
        " workers, but its rendezvous admits ", most, " ", kLimit));
  }
  if (!members_.empty() && !settles_) {
    RETURN_IF_ERROR(AdmitBesideMembers(request));
  }
  absl::Status doubled = absl::AlreadyExistsError(
      absl::StrCat("two workers came with the name ", name,
                   "; give each worker a name of its own"));
  if (RefuseNamed(name, doubled)) doubled_.emplace(name, now);
  if (doubled_.contains(name)) return doubled;
  for (const Waiting& each : waiting_) {
    const wire::JoinRequest& other = *each.request;
    if (other.world_size() != request.world_size() && !IsOneMore(other) &&
        !IsOneMore(request)) {
      return absl::InvalidArgumentError(
          absl::StrCat("worker ", name, " expects a cluster of ",
                       request.world_size(), " workers, worker ",
                       other.self().name(), " one of ", other.world_size()));
    }
    if (wanted >= 0 && other.self().rank() == wanted) {
      return absl::AlreadyExistsError(
          absl::StrCat("rank ", wanted, " is wanted by worker ",
                       other.self().name(), " and by worker ", name));
    }
  }
  return absl::OkStatus();
}

// Checks a worker that comes for the place of a lost member. A member with its
// own name may be lost, too: the end of that member's lease, or its next
// renewal, decides.
absl::Status RendezvousGroup::AdmitBesideMembers(
    const wire::JoinRequest& request) const {
  const std::string& name = request.self().name();
  const auto before = members_.find(name);
  const bool full = !IsOneMore(request) && Counted() == world_size_;
  if (before != members_.end() ? before->second.lease.count() == 0 : full) {
    return TooLateOrTwice(name);
  }
  if (!IsOneMore(request) && request.world_size() != world_size_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", name, " expects a cluster of ", request.world_size(),
        " workers, but it has ", world_size_));
  }
  for (const auto& [other, member] : members_) {
    if (other != name && member.info->rank() == request.self().rank()) {
      return absl::AlreadyExistsError(
          absl::StrCat("rank ", member.info->rank(), " is worker ", other));
    }
  }
  return absl::OkStatus();
}

}  // namespace baton::rpc
