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

// A rendezvous in this process, and the processes of workers that meet there:
// killed and started again as a launcher does. Confined to one thread, but for
// Kill, which one other may call.
class ProcessCluster {
 public:
  // What starts a worker: the program and its arguments. `world_size`: that it
  // waits for; 0: it is one more.
  using Command = std::function<std::vector<std::string>(
      const std::string& name, const std::string& rendezvous, int world_size)>;

  // The rendezvous listens there: see rpc::RendezvousServer::Make.
  explicit ProcessCluster(Command command,
                          const std::string& listen = "127.0.0.1:0",
                          const rpc::Security& security = {})
      : command_(std::move(command)),
        rendezvous_(*rpc::RendezvousServer::Make(listen, security)) {}
  std::string address() const { return rendezvous_->address(); }

  void Start(const std::string& name, int world_size);
  // One more, which the agent has heard of on return; false where it does not
  // within a minute.
  bool StartAgain(const std::string& name, const rpc::Agent& agent);
  // `tell`: as by a launcher, which hears of the end of its own processes.
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
