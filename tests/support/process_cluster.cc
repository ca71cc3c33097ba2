// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/process_cluster.h"

#include <signal.h>

#include <chrono>

#include "tests/support/within.h"

namespace baton::testing {

void ProcessCluster::Start(const std::string& name, int world_size) {
  processes_[name] = std::make_unique<ChildProcess>(
      command_(name, rendezvous_->address(), world_size));
}

bool ProcessCluster::StartAgain(const std::string& name,
                                const rpc::Agent& agent) {
  const auto incarnation = [&] {
    const auto found = agent.Find(name);
    return found.ok() ? found->incarnation : 0;
  };
  const uint64_t before = incarnation();
  Start(name, 0);
  return Within(std::chrono::minutes(1), [&] {
    const uint64_t now = incarnation();
    return now != 0 && now != before;
  });
}

void ProcessCluster::Kill(const std::string& name, bool tell) {
  processes_.at(name)->Kill(SIGKILL);
  if (!tell) return;
  processes_.at(name)->Wait();
  rendezvous_->StrikeOff(name, "was killed by SIGKILL");
}

}  // namespace baton::testing
