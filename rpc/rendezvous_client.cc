// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <thread>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/etcd/etcd.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/hello.h"
#include "rpc/wait_notice.h"

namespace baton::rpc {

using internal::DialerOf;
using internal::RendezvousConnection;
using internal::RendezvousDialer;
using std::chrono::milliseconds;
using std::chrono::system_clock;

namespace {

// The service ends a call at its timeout, with the names of missing workers.
// The client's own deadline is later by this much, for a service that does not
// answer.
constexpr milliseconds kGrace{2000};
constexpr int kMaxWorldSize = 65536;
constexpr size_t kLongestAddress = 4096;
constexpr int64_t kLongestWaitMs = 24 * 3600 * 1000;
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

absl::StatusOr<std::vector<WorkerInfo>> WorkersIn(
    const google::protobuf::RepeatedPtrField<wire::Worker>& list) {
  std::vector<WorkerInfo> workers;
  for (const wire::Worker& each : list) {
    ASSIGN_OR_RETURN(WorkerInfo worker, FromWire(each));
    workers.push_back(std::move(worker));
  }
  return workers;
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

void internal::ToWire(const JoinOptions& options, int rank,
                      wire::JoinRequest& out) {
  out.set_cluster(options.cluster);
  baton::rpc::ToWire(options.self, *out.mutable_self());
  out.mutable_self()->set_rank(rank);
  out.set_world_size(options.world_size);
  out.set_timeout_ms(options.timeout.count());
  out.set_lease_ms(options.lease.count());
  out.set_listens(options.listens);
  out.mutable_expected()->Assign(options.expected.begin(),
                                 options.expected.end());
}

absl::Status internal::CheckJoin(wire::JoinRequest& request) {
  request.set_timeout_ms(
      std::clamp<int64_t>(request.timeout_ms(), 1, kLongestWaitMs));
  request.set_lease_ms(
      std::clamp<int64_t>(request.lease_ms(), 0, kLongestWaitMs));
  const wire::Worker& self = request.self();
  RETURN_IF_ERROR(CheckWorkerName(self.name()));
  RETURN_IF_ERROR(
      Annotate(CheckWorkerName(request.cluster()), "the cluster's name"));
  RETURN_IF_ERROR(Compute::Parse(self.compute()).status());
  const auto invalid = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", self.name(), ": ", what...));
  };
  const int size = request.world_size();
  const int rank = self.rank();
  if (size == kOneMore && rank != -1) {
    return invalid(
        "who joins as one more (--extra) gets its rank, and "
        "wants none (--rank)");
  }
  if (size != kOneMore && (size < 1 || size > kMaxWorldSize)) {
    return invalid("a cluster of ", size, " workers; 1 to ", kMaxWorldSize,
                   " are possible");
  }
  if (size != kOneMore && (rank < -1 || rank >= size)) {
    return invalid("rank ", rank, " in a cluster of ", size);
  }
  if (request.lease_ms() != 0) {
    RETURN_IF_ERROR(Annotate(CheckLease(milliseconds(request.lease_ms())),
                             absl::StrCat("worker ", self.name())));
  }
  if (self.incarnation() == 0) return invalid("no incarnation");
  if (self.address().empty() || self.address().size() > kLongestAddress) {
    return invalid("no usable address");
  }
  if (request.expected_size() > kMaxWorldSize) {
    return invalid("it expects ", request.expected_size(), " workers by name");
  }
  for (const std::string& name : request.expected()) {
    RETURN_IF_ERROR(CheckWorkerName(name));
  }
  return absl::OkStatus();
}

absl::StatusOr<Membership> Join(const std::string& address,
                                const JoinOptions& options) {
  return internal::JoinBy(DialerOf(address, options.access), address, options);
}

absl::StatusOr<Membership> internal::JoinBy(const RendezvousDialer& dial,
                                            const std::string& address,
                                            const JoinOptions& options) {
  wire::JoinRequest request;
  ToWire(options, options.wanted_rank, request);
  RETURN_IF_ERROR(CheckJoin(request));
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
    const auto left = deadline - system_clock::now();
    request.set_timeout_ms(
        std::chrono::duration_cast<milliseconds>(left).count());
    const absl::Status asked =
        connection->Ask(request, &answer, deadline + kGrace);
    if (asked.ok()) break;
    // Where several may serve, another one does soon.
    if (!internal::IsEtcd(address) || !absl::IsUnavailable(asked) ||
        system_clock::now() + kPause >= deadline) {
      return asked;
    }
    std::this_thread::sleep_for(kPause);
  }
  Membership joined{.version = answer.version(), .workers = {}};
  ASSIGN_OR_RETURN(joined.workers, WorkersIn(answer.members()));
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
    milliseconds timeout, const RendezvousAccess& access,
    const RendezvousConnection::Watch& watch) {
  const auto deadline = system_clock::now() + timeout;
  ASSIGN_OR_RETURN(const auto connection,
                   DialerOf(address, access, watch)(deadline));
  wire::ListRequest request;
  request.set_cluster(cluster);
  wire::ListAnswer answer;
  RETURN_IF_ERROR(connection->Ask(request, &answer, deadline, watch));
  return WorkersIn(answer.members());
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
    wire::RenewAnswer change;
    last_ = Renew(last_.ok() ? period : milliseconds(0), patience, &change);
    const bool changed = change.version() != version_;
    if (last_.ok()) last_ = Apply(change, on_change);
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
    next = changed ? begun : begun + period;
  }
}

absl::Status RendezvousLease::Apply(const wire::RenewAnswer& change,
                                    const OnChange& on_change) {
  using Kind = MemberEvent::Kind;
  ASSIGN_OR_RETURN(const std::vector<WorkerInfo> joined,
                   WorkersIn(change.members()));
  version_ = change.version();
  for (const wire::Departure& departed : change.departed()) {
    const auto gone = members_.extract(departed.incarnation());
    if (gone.empty()) continue;
    const std::string why =
        departed.why().empty() ? "was not heard for its lease by the rendezvous"
                               : departed.why();
    on_change(departed.lost() ? Gone(gone.mapped(), Kind::kLost, why)
                              : Gone(gone.mapped(), Kind::kLeft, "has left"));
  }
  if (change.whole()) {
    std::unordered_set<uint64_t> there;
    for (const WorkerInfo& worker : joined) there.insert(worker.incarnation);
    std::erase_if(members_, [&](const auto& member) {
      if (there.contains(member.first)) return false;
      on_change(Gone(member.second, Kind::kLost,
                     "is not listed by the rendezvous any more"));
      return true;
    });
  }
  for (const WorkerInfo& worker : joined) {
    if (!members_.emplace(worker.incarnation, worker).second) continue;
    on_change({.kind = Kind::kJoined, .worker = worker, .cause = {}});
  }
  return absl::OkStatus();
}

absl::Status RendezvousLease::Renew(milliseconds wait, milliseconds patience,
                                    wire::RenewAnswer* answer) {
  if (connection_ == nullptr || !last_.ok()) {
    ASSIGN_OR_RETURN(connection_, dial_(system_clock::now() + kConnectTimeout));
  }
  wire::RenewRequest request;
  request.set_cluster(joined_.cluster);
  request.set_name(joined_.self.name);
  request.set_incarnation(joined_.self.incarnation);
  request.set_version(version_);
  request.set_wait_ms(wait.count());
  JoinOptions seat = joined_;
  seat.expected.clear();
  internal::ToWire(seat, static_cast<int>(seat.self.rank),
                   *request.mutable_seat());
  const auto deadline = system_clock::now() + wait + patience;
  return connection_->Ask(request, answer, deadline,
                          [this](std::function<void()> end) {
                            MutexLock lock(mutex_);
                            if (end != nullptr && stopping_) return false;
                            end_call_ = std::move(end);
                            return true;
                          });
}

absl::Status RendezvousLease::Leave(milliseconds timeout) {
  const auto deadline = system_clock::now() + timeout;
  if (connection_ == nullptr) {
    ASSIGN_OR_RETURN(connection_, dial_(deadline));
  }
  return LeaveBy(*connection_, joined_.cluster, joined_.self, deadline);
}

}  // namespace baton::rpc
