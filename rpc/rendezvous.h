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
class Service;
}  // namespace grpc

namespace baton::rpc {

// "alice=host:port,bob=host:port": ranks by position, incarnations 0 (not
// known). InvalidArgument names the entry that is wrong or there twice.
absl::StatusOr<std::vector<WorkerInfo>> ParseWorkerList(
    const std::string& text);

// What proves to a rendezvous and its workers who the others are.
struct RendezvousAccess {
  Security security = {};
  std::string name = kRendezvousName;  // in the certificate of who runs it
};

// As a world size: of one that joins, at any time, a cluster that has met,
// beside those that it waited for.
constexpr int kOneMore = -1;

struct JoinOptions {
  std::string cluster = "baton";
  WorkerInfo self = {};  // its rank is not looked at
  int wanted_rank = -1;  // -1: any free one
  int world_size = 0;    // workers to wait for, this one included; or kOneMore
  // Their names, where they are known: errors name those that did not come.
  std::vector<std::string> expected = {};
  std::chrono::milliseconds timeout{60'000};
  // Who does not renew its lease for so long is struck off, and another worker
  // may take its place and its name; kLeastLease (rpc/lease.h) or more, or 0:
  // it stays until it leaves.
  std::chrono::milliseconds lease{0};
  // It will keep its lease (RendezvousLease), by which it hears of others:
  // those who join it wait for that.
  bool listens = false;
  RendezvousAccess access = {};
};

// Who belongs to a cluster; the version grows with every change.
struct Membership {
  uint64_t version = 0;
  std::vector<WorkerInfo> workers;  // by rank
};

// What has changed since a version of it.
struct MembershipChange {
  struct Departed {
    std::string name;
    uint64_t incarnation = 0;
    bool lost = false;     // struck off, else it left
    std::string why = "";  // "was ..."; empty: was silent for its lease
  };
  uint64_t version = 0;
  bool whole = false;  // `joined` are all there are: that version is unknown
  std::vector<WorkerInfo> joined = {};
  std::vector<Departed> departed = {};
};

// Waits until all workers of the cluster have come to the rendezvous at
// `address` ("host:port" or "unix:path") and gives them by rank, this one
// among them. Where it joins others, those have heard of it by then, but for
// such as do not answer the rendezvous. Errors, all in one line:
//   Unavailable       "cannot reach the rendezvous at host:port: ..."
//   DeadlineExceeded  who came and who did not
//   AlreadyExists     two workers have one name (both get it) or want one rank
//   InvalidArgument   a name that is none, world sizes that differ, an address
//                     that must not be talked to in clear
//   Unauthenticated   the two agree on no token or TLS; FailedPrecondition: the
//                     certificate is not for the worker
absl::StatusOr<Membership> Join(const std::string& address,
                                const JoinOptions& options);

// Tells the rendezvous that `self` is gone.
absl::Status Leave(const std::string& address, const std::string& cluster,
                   const WorkerInfo& self, std::chrono::milliseconds timeout,
                   const RendezvousAccess& access = {});

// Who has met there, by rank; NotFound for a cluster that has not.
absl::StatusOr<std::vector<WorkerInfo>> ListWorkers(
    const std::string& address, const std::string& cluster,
    std::chrono::milliseconds timeout, const RendezvousAccess& access = {});

class RendezvousGroups;

// The service behind Join, for a server that somebody else runs (GrpcOptions::
// rendezvous) with the same `security`. Serves any number of clusters.
// Thread-safe.
class RendezvousService {
 public:
  explicit RendezvousService(const Security& security = {});
  ~RendezvousService();  // after its server has ended
  // Before the server starts: `let_in` hears from where, as gRPC names it, a
  // worker has joined or renews, so that this connection is no stranger's.
  void OnLetIn(std::function<void(const std::string& peer)> let_in);
  // As RendezvousServer's.
  void StrikeOff(const std::string& name, const std::string& why);
  // Ends the calls that wait, and refuses new ones.
  void Close();
  grpc::Service* service() { return service_.get(); }

 private:
  std::shared_ptr<RendezvousGroups> groups_;
  std::unique_ptr<grpc::Service> service_;
};

// The same with a server of its own, until it is destroyed. Thread-safe.
class RendezvousServer {
 public:
  // `listen` is "host:port"; port 0 picks a free one. Fails with one line that
  // names an address that cannot or must not be listened on.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Make(
      const std::string& listen, const Security& security = {});
  virtual ~RendezvousServer() = default;
  virtual std::string address() const = 0;
  // The process of the workers of this name is known to be dead: they are lost
  // at once, in every cluster, and the others are told why ("was killed by
  // ..."). A worker that lives after all takes its place back by itself.
  virtual void StrikeOff(const std::string& name, const std::string& why) = 0;
};

}  // namespace baton::rpc
