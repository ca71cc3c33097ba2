// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "core/checkpoint_writer.h"
#include "core/tensor.h"
#include "models/distributed/server/directory.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/shard_calls.h"
#include "models/distributed/server/shard_state.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::dist {

// Every worker's registry needs this.
void RegisterParameterServers(rpc::Registry& registry);

// Parameters that servers keep and update while any number of trainers push
// gradients and pull values: docs/parameter_server.md.
//
//   ASSIGN_OR_RETURN(auto servers, dist::ParameterServers::Make(
//       agent, {"worker1", "worker2"}, {.rule = ops::SgdRule{.lr = 0.1}},
//       {{"fc.weight", weight}, {"fc.bias", bias}}));
//   ... Train(servers->directory()) at each trainer, which does
//   ASSIGN_OR_RETURN(auto client,
//                    dist::ServerClient::Join(agent, directory, rank));
//
// The destructor releases the shards, which end with the last trainer's client.
// With backups, servers have directories, too: if the worker of this object is
// killed, trainers continue, and new ones may join by another client's
// ServerClient::directory. Must not outlive the agent. Thread-compatible.
class ParameterServers {
 public:
  using Values = std::vector<std::pair<std::string, Tensor>>;
  // Makes a shard at each server, with these values, f32; with backups, each
  // shard's backup is at the next server. Waits at most for the agent's default
  // timeout.
  static absl::StatusOr<std::unique_ptr<ParameterServers>> Make(
      rpc::Agent& agent, const std::vector<std::string>& servers,
      const ServerOptions& options, const Values& values);

  // Saves the shards (values, the rule's state, rows, versions) and `trainer`,
  // the caller's own state, to a folder that all servers see. Returns when
  // everything is on disk; trainers continue meanwhile. Each shard is saved
  // between two of its updates: for a common version of all shards, no push may
  // be under way. The list of trainers is not saved.
  absl::Status Save(const CheckpointOptions& to, int64_t step,
                    const NamedTensors& trainer = {}) const;

  struct Resumed {
    std::unique_ptr<ParameterServers> servers;
    int64_t step = 0;
    NamedTensors trainer;  // what Save was given
  };
  // Makes servers as Make does, in any number, but takes the values from a
  // checkpoint in the folder: the newest, or as ResumeFrom says. If the shards
  // differed in versions or steps, all continue from the largest. Returns
  // InvalidArgument or NotFound for a checkpoint that does not fit the keys,
  // tables or rules.
  static absl::StatusOr<Resumed> Resume(rpc::Agent& agent,
                                        const std::vector<std::string>& servers,
                                        const ServerOptions& options,
                                        const Values& values,
                                        const std::string& folder,
                                        IfBroken if_broken);
  ~ParameterServers();
  ParameterServers(const ParameterServers&) = delete;
  ParameterServers& operator=(const ParameterServers&) = delete;

  // Trainers, wherever they are, find the servers through this.
  const RRef<ServerDirectory>& directory() const { return directory_; }

 private:
  ParameterServers(rpc::Agent& agent, const ServedKeys& served);
  // `rows` is set if tables do not begin empty.
  static absl::StatusOr<std::unique_ptr<ParameterServers>> Start(
      rpc::Agent& agent, const std::vector<std::string>& servers,
      const ServedKeys& served, const std::vector<ShardImage>& images,
      const std::optional<SavedRows>& rows);

  // Makes a directory at each server, as successors of this one.
  absl::StatusOr<DirectoryLine> LineUp(const std::vector<std::string>& servers);

  rpc::Agent& agent_;
  const std::shared_ptr<ServerDirectory> local_;
  const RRef<ServerDirectory> directory_;
  const std::shared_ptr<ShardCalls> calls_;
};

}  // namespace baton::dist
