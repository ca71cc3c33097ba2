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

// What a worker has to do with the parameter servers of its run: one of them
// makes them, all push to them and read what was pushed. The shards are at two
// or three of the workers, each with a backup.
class Trainer {
 public:
  Trainer(rpc::Agent& agent, Rng& random, Tally& tally, int group);

  static void Register(rpc::Registry& registry);
  // Makes the servers. Waits for them; where one is lost meanwhile there will
  // be none.
  void MakeServers(int workers);
  // Joins as a trainer, waits for that, or pushes, or reads.
  void Step(const std::string& other);
  // Reads when nothing is wrong any more. Returns what failed. Who was given up
  // may read what a server that was cut off as well has kept.
  absl::Status ReadLast(bool was_given_up);
  // Whether a shard has another server than in the beginning, or has lost and
  // found a backup; as seen by ReadLast.
  bool servers_changed() const { return servers_changed_; }
  // Lets go of the servers.
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
  std::unique_ptr<dist::ParameterServers> servers_;  // where they were made
  std::unique_ptr<dist::ServerClient> client_;
  int64_t element_ = -1;
  bool servers_changed_ = false;
};

}  // namespace baton::sim
