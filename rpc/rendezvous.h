// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/security.h"
#include "rpc/worker.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace baton::rpc {

// Parses "alice=host:port,bob=host:port". Ranks follow the order; incarnations
// are 0 (unknown). InvalidArgument names the entry that is malformed or a
// duplicate.
absl::StatusOr<std::vector<WorkerInfo>> ParseWorkerList(
    const std::string& text);

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

// What has changed since a version of the membership.
struct MembershipChange {
  struct Departed {
    std::string name;
    uint64_t incarnation = 0;
    bool lost = false;     // it was struck off; else it left
    std::string why = "";  // "was ..."; empty: was silent for its lease
  };
  uint64_t version = 0;
  // The version asked for is unknown, and `joined` has all members.
  bool whole = false;
  std::vector<WorkerInfo> joined = {};
  std::vector<Departed> departed = {};
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

// Returns the members of a cluster that has met there, by rank; NotFound if it
// has not met.
absl::StatusOr<std::vector<WorkerInfo>> ListWorkers(
    const std::string& address, const std::string& cluster,
    std::chrono::milliseconds timeout, const RendezvousAccess& access = {});

namespace internal {
class RendezvousCalls;
}

// Asked before a rendezvous handles a request and again before it answers:
// callers are told the error in place of an answer. Thread-safe.
using MayAnswer = std::function<absl::Status()>;

// The service behind Join, to be added to an existing server that has the same
// `security` (GrpcOptions::rendezvous). Serves any number of clusters.
// Thread-safe.
class RendezvousService {
 public:
  // As RendezvousServer::Make.
  explicit RendezvousService(const Security& security = {}, int max_members = 0,
                             MayAnswer may_answer = absl::OkStatus);
  ~RendezvousService();  // the server must have ended
  // Call it before the server starts. `let_in` is called with gRPC's name of
  // each connection over which a worker makes a request for itself, so that the
  // server need not close it as unauthenticated.
  void OnLetIn(std::function<void(const std::string& peer)> let_in);
  // As RendezvousServer::StrikeOff.
  void StrikeOff(const std::string& name, const std::string& why);
  // Ends the calls that wait and refuses new ones.
  void Close();
  grpc::Service* service();

 private:
  const std::unique_ptr<internal::RendezvousCalls> calls_;
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
    service_.StrikeOff(name, why);
  }

 private:
  RendezvousServer(const Security& security, int max_members,
                   MayAnswer may_answer);
  absl::Status Listen(const std::string& listen, const Security& security);

  RendezvousService service_;
  const std::shared_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace baton::rpc
