// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "rpc/agent.h"
#include "tests/support/child_process.h"

namespace baton::testing {

// Where alice, who is here, meets workers that are processes of their own.
struct Meeting {
  std::string rendezvous;  // its address
  int world_size = 2;
  std::chrono::milliseconds lease;
};

// Runs worker_peer, which says "joined" once all have met.
std::unique_ptr<ChildProcess> StartPeer(const std::string& name,
                                        const Meeting& meeting);
// Waits for all.
std::unique_ptr<rpc::Agent> JoinAsAlice(const Meeting& meeting);

}  // namespace baton::testing
