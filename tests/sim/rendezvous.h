// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <list>
#include <memory>
#include <string>

#include "rpc/rendezvous.h"
#include "rpc/rendezvous_groups.h"
#include "tests/sim/network.h"

namespace baton::sim {

// The machine of the rendezvous, with one process at a time: the product's
// groups (rpc/rendezvous_groups.h), to which the simulated network brings
// requests.
class RendezvousMachine {
 public:
  RendezvousMachine(Network& network, int machine)
      : network_(network), machine_(machine) {}

  // A process that knows nothing of earlier ones.
  void Start();
  void Kill();
  // The connections of that worker's process have ended.
  void OnKilled(int group);
  int group() const { return group_; }
  int machine() const { return machine_; }

  // For the worker of the calling thread, on that machine.
  rpc::internal::RendezvousDialer DialerOf(int machine);

 private:
  friend class RendezvousWay;
  enum class Kind { kJoin, kLeave, kRenew, kList };
  // What a caller waits for.
  struct Asked {
    Kind kind = Kind::kRenew;
    int machine = 0;
    int group = 0;
    std::string request;
    bool done = false;
    absl::Status status;
    std::string answer;
    bool given_up = false;  // by who asked
    rpc::RendezvousGroups::Cancel cancel;
  };
  using AskedPtr = std::shared_ptr<Asked>;

  void Serve(rpc::RendezvousGroups& groups);
  void Begin(rpc::RendezvousGroups& groups, const AskedPtr& asked);
  template <typename Request, typename Answer>
  void Handle(rpc::RendezvousGroups& groups, const AskedPtr& asked);
  void Give(const AskedPtr& asked, const absl::Status& status,
            const std::string& answer);
  void Settle(const AskedPtr& asked, const absl::Status& status,
              const std::string& answer);

  Network& network_;
  const int machine_;
  int group_ = -1;  // none runs
  std::deque<AskedPtr> requests_;
  std::list<AskedPtr> under_way_;
};

}  // namespace baton::sim
