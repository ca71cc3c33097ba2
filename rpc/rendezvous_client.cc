// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_client.h"

#include <algorithm>
#include <thread>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/etcd/etcd.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/transports/address.h"
#include "rpc/transports/credentials.h"
#include "rpc/wait_notice.h"

namespace baton::rpc {

using internal::DialerOf;
using internal::FromWire;
using internal::RendezvousConnection;
using internal::RendezvousDialer;
using internal::ToWire;
using std::chrono::milliseconds;
using std::chrono::system_clock;

namespace {

// The service ends a call at its timeout, with the names of missing workers.
// The client's own deadline is later by this much, for a service that does not
// answer.
constexpr milliseconds kGrace{2000};
constexpr int kRenewalsPerLease = 5;
// A renewal first waits lease / kPatiencePerLease for its answer. The wait
// doubles with each failure. It is limited because a broken connection may
// never report an error.
constexpr int kPatiencePerLease = 10;
constexpr milliseconds kShortestPause{10};
constexpr milliseconds kPause{100};  // before a worker asks again to join
// Short, so that an unreachable rendezvous does not delay a shutdown for long.
constexpr milliseconds kConnectTimeout{300};

MemberEvent Gone(const WorkerInfo& worker, MemberEvent::Kind kind,
                 const std::string& what) {
  return {
      kind, worker,
      absl::UnavailableError(absl::StrCat("worker ", worker.name, " ", what))};
}

std::string OthersAwaited(const std::string& address,
                          const JoinOptions& options) {
  const std::string place =
      absl::StrCat("waits at the rendezvous at ", address);
  if (options.world_size == kOneMore) {
    return absl::StrCat(place, " to be let in by cluster ", options.cluster);
  }
  return absl::StrCat(place, " until ", options.world_size,
                      " workers of cluster ", options.cluster, " have come");
}

absl::Status AskToJoin(RendezvousConnection& connection,
                       const JoinOptions& options,
                       RendezvousConnection::Deadline deadline,
                       wire::JoinAnswer& answer) {
  wire::JoinRequest request;
  ToWire(options, options.wanted_rank, request);
  request.set_timeout_ms(std::max<int64_t>(
      1,
      std::chrono::duration_cast<milliseconds>(deadline - system_clock::now())
          .count()));
  return connection.Ask(request, &answer, deadline + kGrace);
}

absl::Status LeaveBy(RendezvousConnection& connection,
                     const std::string& cluster, const WorkerInfo& self,
                     RendezvousConnection::Deadline deadline) {
  wire::LeaveRequest request;
  request.set_cluster(cluster);
  request.set_name(self.name);
  request.set_incarnation(self.incarnation);
  wire::LeaveAnswer answer;
  return connection.Ask(request, &answer, deadline);
}

}  // namespace

absl::StatusOr<std::vector<WorkerInfo>> ParseWorkerList(
    const std::string& text) {
  std::vector<WorkerInfo> workers;
  for (const std::string& entry :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", entry, "\" in the list of workers is no name=host:port"));
    }
    WorkerInfo worker{entry.substr(0, equals),
                      Rank{static_cast<int32_t>(workers.size())}, 0,
                      entry.substr(equals + 1)};
    RETURN_IF_ERROR(CheckWorkerName(worker.name));
    if (!absl::StartsWith(worker.address, "unix:")) {
      ASSIGN_OR_RETURN(HostPort parsed, ParseHostPort(worker.address));
      if (parsed.port == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("worker ", worker.name,
                         " needs a port other than 0 in the list of workers"));
      }
    }
    for (const WorkerInfo& other : workers) {
      if (other.name != worker.name && other.address != worker.address) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", entry, "\" repeats the name or the address of worker ",
          other.name, " in the list of workers"));
    }
    workers.push_back(std::move(worker));
  }
  return workers;
}

absl::StatusOr<Membership> Join(const std::string& address,
                                const JoinOptions& options) {
  return internal::JoinBy(DialerOf(address, options.access), address, options);
}

absl::StatusOr<Membership> internal::JoinBy(const RendezvousDialer& dial,
                                            const std::string& address,
                                            const JoinOptions& options) {
  RETURN_IF_ERROR(CheckWorkerName(options.self.name));
  RETURN_IF_ERROR(CheckExposure(options.access.security,
                                "a worker would talk to the rendezvous at",
                                address));
  const auto deadline = system_clock::now() + options.timeout;
  WaitNotice notice(
      absl::StrCat("worker ", options.self.name),
      absl::StrCat("waits for the rendezvous at ", address,
                   ", where nobody answers yet (is it started, and is the "
                   "address right?)"),
      WaitNotice::Clock::now() + options.timeout);
  wire::JoinAnswer answer;
  for (;;) {
    ASSIGN_OR_RETURN(const std::shared_ptr<RendezvousConnection> connection,
                     dial(deadline));
    notice.Now(OthersAwaited(address, options));
    const absl::Status asked =
        AskToJoin(*connection, options, deadline, answer);
    if (asked.ok()) break;
    // Where several may serve, another one does soon.
    if (!internal::IsEtcd(address) || !absl::IsUnavailable(asked) ||
        system_clock::now() + kPause >= deadline) {
      return asked;
    }
    std::this_thread::sleep_for(kPause);
  }
  Membership joined{.version = answer.version(), .workers = {}};
  ASSIGN_OR_RETURN(joined.workers, FromWire(answer.members()));
  const bool self_is_there =
      std::any_of(joined.workers.begin(), joined.workers.end(),
                  [&](const WorkerInfo& worker) {
                    return worker.name == options.self.name &&
                           worker.incarnation == options.self.incarnation;
                  });
  if (!self_is_there ||
      static_cast<int>(joined.workers.size()) < options.world_size) {
    return absl::InternalError(absl::StrCat(
        "the rendezvous at ", address, " gave a list that makes no sense"));
  }
  return joined;
}

absl::Status Leave(const std::string& address, const std::string& cluster,
                   const WorkerInfo& self, milliseconds timeout,
                   const RendezvousAccess& access) {
  const auto deadline = system_clock::now() + timeout;
  ASSIGN_OR_RETURN(const auto connection, DialerOf(address, access)(deadline));
  return LeaveBy(*connection, cluster, self, deadline);
}

absl::StatusOr<std::vector<WorkerInfo>> ListWorkers(
    const std::string& address, const std::string& cluster,
    milliseconds timeout, const RendezvousAccess& access) {
  return internal::ListWatched(address, cluster, timeout, access, nullptr);
}

absl::StatusOr<std::vector<WorkerInfo>> internal::ListWatched(
    const std::string& address, const std::string& cluster,
    milliseconds timeout, const RendezvousAccess& access,
    const RendezvousConnection::Watch& watch) {
  const auto deadline = system_clock::now() + timeout;
  ASSIGN_OR_RETURN(const auto connection,
                   DialerOf(address, access, watch)(deadline));
  wire::ListRequest request;
  request.set_cluster(cluster);
  wire::ListAnswer answer;
  RETURN_IF_ERROR(connection->Ask(request, &answer, deadline, watch));
  return FromWire(answer.members());
}

RendezvousLease::~RendezvousLease() { Stop(); }

RendezvousLease::RendezvousLease(const std::string& address, JoinOptions joined,
                                 Membership members)
    : RendezvousLease(DialerOf(address, joined.access), joined,
                      std::move(members)) {}

RendezvousLease::RendezvousLease(RendezvousDialer dial, JoinOptions joined,
                                 Membership members)
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
  ToWire(joined_, static_cast<int>(joined_.self.rank), *request.mutable_seat());
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
  return FromWire(answer);
}

absl::Status RendezvousLease::Leave(milliseconds timeout) {
  const auto deadline = system_clock::now() + timeout;
  if (connection_ == nullptr) {
    ASSIGN_OR_RETURN(connection_, dial_(deadline));
  }
  return LeaveBy(*connection_, joined_.cluster, joined_.self, deadline);
}

}  // namespace baton::rpc
