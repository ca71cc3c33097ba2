// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "models/distributed/server/client.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/agent.h"
#include "rpc/registry.h"
#include "tests/sim/rng.h"
#include "tests/sim/tally.h"

namespace baton::sim {

// A worker's part in a run with parameter servers: one worker makes the
// servers, all push to them and read from them. The shards are at two or three
// of the workers, each with a backup.
class Trainer {
 public:
  Trainer(rpc::Agent& agent, Rng& random, Tally& tally, int group);

  static void Register(rpc::Registry& registry);
  // Makes the servers and waits for them; if a worker is lost meanwhile, there
  // are none.
  void MakeServers(int workers);
  // Joins as a trainer, pushes or reads. Waits only to join.
  void Step(const std::string& other);
  // Reads after the last fault. Returns the error of the read. A worker that
  // was given up may read what a server that was cut off as well has kept, so
  // its values are not checked.
  absl::Status ReadLast(bool was_given_up);
  // Returns true if ReadLast has found that a shard's server has changed, or
  // that it has lost and found a backup.
  bool servers_changed() const { return servers_changed_; }
  // Drops the servers.
  void Drop();

 private:
  struct Calls;

  void Join(const std::string& other);
  void Push();
  void Read();

  rpc::Agent& agent_;
  Rng& random_;
  Tally& tally_;
  const int group_;
  std::unique_ptr<dist::ParameterServers> servers_;  // at their maker
  std::unique_ptr<dist::ServerClient> client_;
  int64_t element_ = -1;
  int64_t reads_ = 0;  // every second one is of one version
  bool servers_changed_ = false;
};

}  // namespace baton::sim
