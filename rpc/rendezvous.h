// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/security.h"
#include "rpc/worker.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace baton::rpc {

namespace wire {  // rpc/rendezvous.proto
class JoinAnswer;
class JoinRequest;
class LeaveAnswer;
class LeaveRequest;
class ListAnswer;
class ListRequest;
class RenewAnswer;
class RenewRequest;
class Worker;
}  // namespace wire

// The credentials by which a rendezvous and its workers authenticate each
// other.
struct RendezvousAccess {
  Security security = {};
  // The name in the certificate of the process that runs the rendezvous.
  std::string name = kRendezvousName;
};

// As a world size: the worker joins a cluster that has already met, at any
// time, in addition to the workers that the cluster waited for.
constexpr int kOneMore = -1;

struct JoinOptions {
  std::string cluster = "baton";
  WorkerInfo self = {};  // its rank is ignored
  int wanted_rank = -1;  // -1: any free one
  int world_size = 0;    // workers to wait for, this one included; or kOneMore
  // The names of these workers, if known; errors name those that did not come.
  std::vector<std::string> expected = {};
  std::chrono::milliseconds timeout{60'000};
  // A member that does not renew its lease for this long is struck off, and
  // another worker may take its rank and name. At least kLeastLease
  // (rpc/worker.h), or 0: the worker stays until it leaves.
  std::chrono::milliseconds lease{0};
  // The worker will keep its lease with a RendezvousLease, through which it
  // hears of other workers. Workers that join later wait until it has heard of
  // them.
  bool listens = false;
  RendezvousAccess access = {};
};

// The members of a cluster. The version grows with every change.
struct Membership {
  uint64_t version = 0;
  std::vector<WorkerInfo> workers;  // by rank
};

// Waits until all workers of the cluster have come to the rendezvous at
// `address` ("host:port" or "unix:path"). Returns them by rank, including this
// one. If it joins a cluster that has met, the members have heard of it by
// then, except those that do not answer the rendezvous. Errors are one line
// each:
//   Unavailable       "cannot reach the rendezvous at host:port: ..."
//   DeadlineExceeded  who came and who did not
//   AlreadyExists     two workers have one name (both get it) or want one rank
//   InvalidArgument   a name that is none, world sizes that differ, an address
//                     that must not be talked to in clear
//   ResourceExhausted the cluster has as many members as its rendezvous admits
//   Unauthenticated   the two agree on no token or TLS; FailedPrecondition: the
//                     certificate is not for the worker
absl::StatusOr<Membership> Join(const std::string& address,
                                const JoinOptions& options);

// Tells the rendezvous that `self` leaves the cluster.
absl::Status Leave(const std::string& address, const std::string& cluster,
                   const WorkerInfo& self, std::chrono::milliseconds timeout,
                   const RendezvousAccess& access = {});

namespace internal {

// A worker's connection to its rendezvous, for one call at a time. Errors name
// the rendezvous. Thread-compatible.
class RendezvousConnection {
 public:
  using Deadline = std::chrono::system_clock::time_point;
  // Called before a call begins, with a function that may be called on any
  // thread to end the call early. Called with null after the call has ended. If
  // it returns false before the call begins, the call ends with Cancelled.
  using Watch = std::function<bool(std::function<void()> end)>;

  virtual ~RendezvousConnection() = default;
  virtual absl::Status Ask(const wire::JoinRequest& request,
                           wire::JoinAnswer* answer, Deadline deadline,
                           const Watch& watch = {}) = 0;
  virtual absl::Status Ask(const wire::LeaveRequest& request,
                           wire::LeaveAnswer* answer, Deadline deadline,
                           const Watch& watch = {}) = 0;
  virtual absl::Status Ask(const wire::RenewRequest& request,
                           wire::RenewAnswer* answer, Deadline deadline,
                           const Watch& watch = {}) = 0;
  virtual absl::Status Ask(const wire::ListRequest& request,
                           wire::ListAnswer* answer, Deadline deadline,
                           const Watch& watch = {}) = 0;
};

// Connects to one rendezvous. Returns Unavailable if nothing answers there by
// `deadline`, and Unauthenticated at once if the two sides do not agree on TLS.
using RendezvousDialer =
    std::function<absl::StatusOr<std::shared_ptr<RendezvousConnection>>(
        RendezvousConnection::Deadline deadline)>;

// Returns a dialer that uses gRPC (rendezvous_grpc.cc). If there is a token,
// each call proves that the worker knows it, and answers are accepted only from
// a rendezvous that proves the same. `watch` can end the attempt to connect
// early.
RendezvousDialer DialerOf(const std::string& address,
                          const RendezvousAccess& access,
                          RendezvousConnection::Watch watch = {});

// Like Join, with a connection made by `dial`. `address` is for messages.
absl::StatusOr<Membership> JoinBy(const RendezvousDialer& dial,
                                  const std::string& address,
                                  const JoinOptions& options);

// Writes a request to join. `rank` is the rank that the worker wants or has.
void ToWire(const JoinOptions& options, int rank, wire::JoinRequest& out);
// Limits the times of a request to a safe range, and returns InvalidArgument if
// the request is invalid by itself. Both sides check it, since neither trusts
// the other one.
absl::Status CheckJoin(wire::JoinRequest& request);

}  // namespace internal

// Returns the members of a cluster that has met there, by rank; NotFound if it
// has not met. `watch` can end it early, also while it connects; it is called
// for each of the two.
absl::StatusOr<std::vector<WorkerInfo>> ListWorkers(
    const std::string& address, const std::string& cluster,
    std::chrono::milliseconds timeout, const RendezvousAccess& access = {},
    const internal::RendezvousConnection::Watch& watch = {});

// Keeps a worker's lease with its rendezvous from a thread of its own: it
// renews the lease every fifth of it and hears at once which workers joined and
// left. If the rendezvous does not answer, it tries again over a new
// connection, until the rendezvous says that another worker has this one's
// place. A rendezvous that was restarted or had struck the worker off takes it
// back. Thread-safe.
class RendezvousLease {
 public:
  // Called on the lease's thread with kJoined, kLeft and kLost events.
  using OnChange = std::function<void(const MemberEvent&)>;

  // `joined.self` includes its rank; `members` is the result of Join.
  RendezvousLease(const std::string& address, JoinOptions joined,
                  Membership members);
  RendezvousLease(internal::RendezvousDialer dial, JoinOptions joined,
                  Membership members);
  ~RendezvousLease();

  void Start(OnChange on_change);
  // No OnChange runs after Stop returns. Must not be called from OnChange.
  // Idempotent.
  void Stop();
  // Leaves the cluster, which frees the worker's place at once. Call it after
  // Stop. Takes at most `timeout`, and returns at once if the connection is
  // known to be broken.
  absl::Status Leave(std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;

  void Run(const OnChange& on_change);
  // The rendezvous may delay its answer by `wait`; after a further `patience`
  // the renewal has failed.
  absl::Status Renew(std::chrono::milliseconds wait,
                     std::chrono::milliseconds patience,
                     wire::RenewAnswer* answer);
  absl::Status Apply(const wire::RenewAnswer& change,
                     const OnChange& on_change);
  bool PauseUntil(Clock::time_point until);

  const internal::RendezvousDialer dial_;
  const JoinOptions joined_;
  // Used by the thread alone until Stop has returned.
  uint64_t version_ = 0;
  std::unordered_map<uint64_t, WorkerInfo> members_;  // by incarnation
  // Null before the first connection.
  std::shared_ptr<internal::RendezvousConnection> connection_;
  absl::Status last_;  // result of the last renewal

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Ends the renewal under way.
  std::function<void()> end_call_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

// Asked before a rendezvous handles a request and again before it answers:
// callers are told the error in place of an answer. Thread-safe.
using MayAnswer = std::function<absl::Status()>;

// The service behind Join, to be added to an existing server that has the same
// `security` (GrpcOptions::rendezvous). Serves any number of clusters.
// Thread-safe.
class RendezvousService {
 public:
  // As RendezvousServer::Make.
  static std::unique_ptr<RendezvousService> Make(
      const Security& security = {}, int max_members = 0,
      MayAnswer may_answer = absl::OkStatus);
  virtual ~RendezvousService() = default;  // the server must have ended
  // Call it before the server starts. `let_in` is called with gRPC's name of
  // each connection over which a worker makes a request for itself, so that the
  // server need not close it as unauthenticated.
  virtual void OnLetIn(std::function<void(const std::string& peer)> let_in) = 0;
  // As RendezvousServer::StrikeOff.
  virtual void StrikeOff(const std::string& name, const std::string& why) = 0;
  // Ends the calls that wait and refuses new ones.
  virtual void Close() = 0;
  virtual grpc::Service* service() = 0;
};

class Acceptor;

// A RendezvousService with a server of its own, which runs until this is
// destroyed. Thread-safe.
class RendezvousServer {
 public:
  // `listen` is "host:port"; port 0 picks a free one. A cluster has at most
  // `max_members` workers at a time, trainers included; 0: any number. Fails
  // with one line that names the address if the server cannot or must not
  // listen on it.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Make(
      const std::string& listen, const Security& security = {},
      int max_members = 0, MayAnswer may_answer = absl::OkStatus);
  ~RendezvousServer();
  const std::string& address() const { return address_; }
  // Strikes off all workers of this name, in every cluster, because their
  // process is known to be dead. The other workers are told `why` ("was killed
  // by ..."). A worker that is alive after all takes its place back by itself.
  void StrikeOff(const std::string& name, const std::string& why) {
    service_->StrikeOff(name, why);
  }

 private:
  RendezvousServer(const Security& security, int max_members,
                   MayAnswer may_answer);
  absl::Status Listen(const std::string& listen, const Security& security);

  const std::unique_ptr<RendezvousService> service_;
  const std::shared_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace baton::rpc
