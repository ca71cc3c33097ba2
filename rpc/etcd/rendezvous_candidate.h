// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/etcd/etcd.h"
#include "rpc/rendezvous.h"
#include "rpc/security.h"

namespace baton::rpc {

struct CandidateOptions {
  std::string etcd;    // "etcd://host:port,host:port,..."
  std::string listen;  // as RendezvousServer::Make (rpc/rendezvous.h); others
                       // must reach it
  Security security = {};
  int max_members = 0;
  // How long after its last word to etcd a candidate serves. Longer than
  // elections among the nodes of etcd take (1 to 2 s unless it is told
  // otherwise), as nobody hears it then. etcd counts in whole seconds.
  std::chrono::seconds ttl{3};
};

// One of several processes that may serve as a rendezvous. The one that has
// made its key in etcd serves; the others stand by and refuse all requests.
// When it dies, or etcd does not hear it for its `ttl`, the key goes and
// another one serves, which knows nobody: members that renew their leases are
// taken back, as after a restart of a rendezvous.
//
// No two serve at a time. A candidate counts its `ttl` from before its last
// word to etcd, and looks at the clock before each answer: one that was
// stopped, or is cut off from etcd, stops to answer before the key can go.
// (This holds for clocks that run equally fast; the time does not matter.)
// Thread-safe.
class RendezvousCandidate {
 public:
  // Called when it stands by, first of all within Make, and when it begins to
  // serve, with where it listens.
  using OnChange = std::function<void(const std::string& address, bool serves)>;

  // Listens and stands by. Fails as RendezvousServer::Make; if the nodes of the
  // etcd must not be talked to; and if they are of other machines, which do not
  // reach where it would listen. Does not fail if none of them answers.
  static absl::StatusOr<std::unique_ptr<RendezvousCandidate>> Make(
      CandidateOptions options, OnChange on_change);
  // If it serves, another one may at once.
  ~RendezvousCandidate();

 private:
  // Counts the time for which a machine is suspended, too.
  using Time = std::chrono::nanoseconds;
  static Time Now();

  RendezvousCandidate(CandidateOptions options, OnChange on_change,
                      std::unique_ptr<internal::Etcd> etcd);
  absl::Status Listen(const std::string& listen);
  void Run();
  // Returns true once this candidate serves.
  bool TakeOver();
  // Returns once it does not serve any more, or is to stop.
  void Serve();
  void GiveUp(const std::string& why);
  absl::Status MayAnswer() const;
  // Returns false if the candidate is to stop.
  bool Pause(std::chrono::milliseconds time);

  const CandidateOptions options_;
  const OnChange on_change_;
  const std::unique_ptr<internal::Etcd> etcd_;  // used by the thread alone
  std::string address_;                         // constant from Make on
  int64_t lease_ = 0;
  bool told_silence_ = false;
  // Until when it serves; 0 while it stands by.
  std::atomic<Time> until_{Time(0)};
  std::unique_ptr<RendezvousServer> server_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

namespace internal {

// Returns a dialer (DialerOf, rpc/rendezvous.h) that asks the etcd at `address`
// which candidate serves, and connects to that one.
RendezvousDialer DialerByEtcd(const std::string& address,
                              const RendezvousAccess& access,
                              RendezvousConnection::Watch watch);

}  // namespace internal
}  // namespace baton::rpc
