// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/agent.h"
#include "rpc/rendezvous.h"
#include "rpc/security.h"
#include "tests/support/child_process.h"

namespace baton::testing {

// A rendezvous in this process and worker processes that meet there, which can
// be killed and started again as a launcher does. Confined to one thread,
// except Kill, which one other thread may call.
class ProcessCluster {
 public:
  // Returns the command that starts a worker. `world_size` is the one to wait
  // for; 0: the worker joins as one more.
  using Command = std::function<std::vector<std::string>(
      const std::string& name, const std::string& rendezvous, int world_size)>;

  // The rendezvous listens at `listen`: see rpc::RendezvousServer::Make.
  explicit ProcessCluster(Command command,
                          const std::string& listen = "127.0.0.1:0",
                          const rpc::Security& security = {})
      : command_(std::move(command)),
        rendezvous_(*rpc::RendezvousServer::Make(listen, security)) {}
  std::string address() const { return rendezvous_->address(); }

  void Start(const std::string& name, int world_size);
  // Starts a worker as one more. Returns when the agent has heard of it; false
  // if it does not within a minute.
  bool StartAgain(const std::string& name, const rpc::Agent& agent);
  // Kills a worker. If `tell` is true, reports its end to the rendezvous, as a
  // launcher does.
  void Kill(const std::string& name, bool tell);
  ChildProcess& operator[](const std::string& name) {
    return *processes_.at(name);
  }

 private:
  const Command command_;
  const std::unique_ptr<rpc::RendezvousServer> rendezvous_;
  std::map<std::string, std::unique_ptr<ChildProcess>> processes_;
};

}  // namespace baton::testing
