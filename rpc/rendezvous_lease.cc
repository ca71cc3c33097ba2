// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_lease.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "rpc/rendezvous.grpc.pb.h"
#include "rpc/rendezvous_client.h"
#include "rpc/rendezvous_wire.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr int kRenewalsPerLease = 5;
constexpr milliseconds kShortestPause{10};
// A rendezvous that is not there must not hold up a shutdown for long.
constexpr milliseconds kConnectTimeout{300};

bool Contains(const std::vector<WorkerInfo>& workers,
              const WorkerInfo& worker) {
  return std::any_of(workers.begin(), workers.end(), [&](const auto& other) {
    return other.name == worker.name && other.incarnation == worker.incarnation;
  });
}

}  // namespace

RendezvousLease::~RendezvousLease() { Stop(); }

void RendezvousLease::Start(OnNewcomer on_newcomer) {
  MutexLock lock(mutex_);
  if (stopping_ || thread_.joinable()) return;
  thread_ = std::thread(
      [this, on_newcomer = std::move(on_newcomer)] { Run(on_newcomer); });
}

void RendezvousLease::Stop() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
    thread.swap(thread_);
    changed_.NotifyAll();
  }
  if (thread.joinable()) thread.join();
}

bool RendezvousLease::Pause(milliseconds pause) {
  const auto until = std::chrono::steady_clock::now() + pause;
  MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, until)) {
  }
  return !stopping_;
}

void RendezvousLease::Run(const OnNewcomer& on_newcomer) {
  const milliseconds pause =
      std::max(joined_.lease / kRenewalsPerLease, kShortestPause);
  do {
    absl::StatusOr<Membership> now = Renew();
    if (absl::IsNotFound(now.status())) {
      LogWarning("worker ", joined_.self.name,
                 " is not counted any more, as it was silent for its lease or "
                 "the rendezvous began anew; others that join do not find it "
                 "until it is started again: ",
                 now.status().message());
      return;
    }
    if (!now.ok() || now->version == known_.version) continue;
    for (const WorkerInfo& worker : now->workers) {
      if (!Contains(known_.workers, worker)) on_newcomer(worker);
    }
    known_ = *std::move(now);
  } while (Pause(pause));
}

absl::StatusOr<Membership> RendezvousLease::Renew() {
  if (connection_ == nullptr) {
    ASSIGN_OR_RETURN(connection_, internal::RendezvousConnection::Make(
                                      address_, joined_.access,
                                      system_clock::now() + kConnectTimeout));
  }
  wire::RenewRequest request;
  request.set_cluster(joined_.cluster);
  request.set_name(joined_.self.name);
  request.set_incarnation(joined_.self.incarnation);
  request.set_version(known_.version);
  wire::RenewAnswer answer;
  RETURN_IF_ERROR(connection_->Ask(request, &answer,
                                   system_clock::now() + joined_.lease,
                                   [this](grpc::ClientContext* call) {
                                     MutexLock lock(mutex_);
                                     if (call != nullptr && stopping_)
                                       return false;
                                     call_ = call;
                                     return true;
                                   }));
  Membership now{.version = answer.version(), .workers = {}};
  for (const wire::Member& member : answer.members()) {
    ASSIGN_OR_RETURN(WorkerInfo worker, internal::FromWire(member));
    now.workers.push_back(std::move(worker));
  }
  return now;
}

absl::Status RendezvousLease::Leave(milliseconds timeout) {
  if (connection_ == nullptr) {
    return rpc::Leave(address_, joined_.cluster, joined_.self, timeout,
                      joined_.access);
  }
  wire::LeaveRequest request;
  request.set_cluster(joined_.cluster);
  request.set_name(joined_.self.name);
  request.set_incarnation(joined_.self.incarnation);
  wire::LeaveAnswer answer;
  return connection_->Ask(request, &answer, system_clock::now() + timeout);
}

}  // namespace baton::rpc
