// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_lease.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/rendezvous_wire.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr int kRenewalsPerLease = 5;
// A renewal first waits lease / kPatiencePerLease for its answer. The wait
// doubles with each failure. It is limited because a broken connection may
// never report an error.
constexpr int kPatiencePerLease = 10;
constexpr milliseconds kShortestPause{10};
// Short, so that an unreachable rendezvous does not delay a shutdown for long.
constexpr milliseconds kConnectTimeout{300};

MemberEvent Gone(const WorkerInfo& worker, MemberEvent::Kind kind,
                 const std::string& what) {
  return {
      kind, worker,
      absl::UnavailableError(absl::StrCat("worker ", worker.name, " ", what))};
}

}  // namespace

RendezvousLease::~RendezvousLease() { Stop(); }

RendezvousLease::RendezvousLease(const std::string& address, JoinOptions joined,
                                 Membership members)
    : RendezvousLease(internal::DialerOf(address, joined.access), joined,
                      std::move(members)) {}

RendezvousLease::RendezvousLease(internal::RendezvousDialer dial,
                                 JoinOptions joined, Membership members)
    : dial_(std::move(dial)),
      joined_(std::move(joined)),
      version_(members.version) {
  for (WorkerInfo& worker : members.workers) {
    const uint64_t incarnation = worker.incarnation;
    members_[incarnation] = std::move(worker);
  }
}

void RendezvousLease::Start(OnChange on_change) {
  MutexLock lock(mutex_);
  if (stopping_ || thread_.joinable()) return;
  thread_ =
      std::thread([this, on_change = std::move(on_change)] { Run(on_change); });
}

void RendezvousLease::Stop() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (end_call_ != nullptr) end_call_();
    thread.swap(thread_);
    changed_.NotifyAll();
  }
  if (thread.joinable()) thread.join();
}

bool RendezvousLease::PauseUntil(Clock::time_point until) {
  MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, until)) {
  }
  return !stopping_;
}

void RendezvousLease::Run(const OnChange& on_change) {
  const milliseconds period =
      std::max(joined_.lease / kRenewalsPerLease, kShortestPause);
  const milliseconds least =
      std::max(joined_.lease / kPatiencePerLease, kShortestPause);
  milliseconds patience = least;
  Clock::time_point next = Clock::now();
  while (PauseUntil(next)) {
    const auto begun = Clock::now();
    const auto change = Renew(last_.ok() ? period : milliseconds(0), patience);
    last_ = change.status();
    if (absl::IsNotFound(last_)) {
      LogWarning("worker ", joined_.self.name,
                 " is not counted any more, as it was silent for its lease or "
                 "the rendezvous began anew, and its place is taken; others "
                 "that join do not find it until it is started again: ",
                 last_.message());
      return;
    }
    if (!last_.ok()) {
      patience = std::min(2 * patience, joined_.lease);
      next = begun + least;
      continue;
    }
    patience = least;
    next = change->version == version_ ? begun + period : begun;
    Apply(*change, on_change);
  }
}

void RendezvousLease::Apply(const MembershipChange& change,
                            const OnChange& on_change) {
  using Kind = MemberEvent::Kind;
  version_ = change.version;
  for (const MembershipChange::Departed& departed : change.departed) {
    const auto gone = members_.extract(departed.incarnation);
    if (gone.empty()) continue;
    const std::string why =
        departed.why.empty() ? "was not heard for its lease by the rendezvous"
                             : departed.why;
    on_change(departed.lost ? Gone(gone.mapped(), Kind::kLost, why)
                            : Gone(gone.mapped(), Kind::kLeft, "has left"));
  }
  if (change.whole) {
    std::unordered_set<uint64_t> there;
    for (const WorkerInfo& worker : change.joined) {
      there.insert(worker.incarnation);
    }
    std::erase_if(members_, [&](const auto& member) {
      if (there.contains(member.first)) return false;
      on_change(Gone(member.second, Kind::kLost,
                     "is not listed by the rendezvous any more"));
      return true;
    });
  }
  for (const WorkerInfo& worker : change.joined) {
    if (!members_.emplace(worker.incarnation, worker).second) continue;
    on_change({.kind = Kind::kJoined, .worker = worker, .cause = {}});
  }
}

absl::StatusOr<MembershipChange> RendezvousLease::Renew(milliseconds wait,
                                                        milliseconds patience) {
  if (connection_ == nullptr || !last_.ok()) {
    ASSIGN_OR_RETURN(connection_, dial_(system_clock::now() + kConnectTimeout));
  }
  wire::RenewRequest request;
  request.set_cluster(joined_.cluster);
  request.set_name(joined_.self.name);
  request.set_incarnation(joined_.self.incarnation);
  request.set_version(version_);
  request.set_wait_ms(wait.count());
  internal::ToWire(joined_, static_cast<int>(joined_.self.rank),
                   *request.mutable_seat());
  request.mutable_seat()->clear_expected();
  wire::RenewAnswer answer;
  RETURN_IF_ERROR(connection_->Ask(request, &answer,
                                   system_clock::now() + wait + patience,
                                   [this](std::function<void()> end) {
                                     MutexLock lock(mutex_);
                                     if (end != nullptr && stopping_)
                                       return false;
                                     end_call_ = std::move(end);
                                     return true;
                                   }));
  return internal::FromWire(answer);
}

absl::Status RendezvousLease::Leave(milliseconds timeout) {
  const auto deadline = system_clock::now() + timeout;
  if (connection_ == nullptr) {
    ASSIGN_OR_RETURN(connection_, dial_(deadline));
  }
  wire::LeaveRequest request;
  request.set_cluster(joined_.cluster);
  request.set_name(joined_.self.name);
  request.set_incarnation(joined_.self.incarnation);
  wire::LeaveAnswer answer;
  return connection_->Ask(request, &answer, deadline);
}

}  // namespace baton::rpc
