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

// Every worker's registry needs it.
void RegisterParameterServers(rpc::Registry& registry);

// Parameters that servers keep and step while any number of trainers push
// gradients and pull values: docs/parameter_server.md.
//
//   ASSIGN_OR_RETURN(auto servers, dist::ParameterServers::Make(
//       agent, {"worker1", "worker2"}, {.rule = ops::SgdRule{.lr = 0.1}},
//       {{"fc.weight", weight}, {"fc.bias", bias}}));
//   ... Train(servers->directory()) at each trainer, which does
//   ASSIGN_OR_RETURN(auto client,
//                    dist::ServerClient::Join(agent, directory, rank));
//
// Its end lets go of the shards, which end with the last trainer's client.
// Where there are backups, servers have directories, too: when the worker of
// this one is killed, trainers go on, and may join by ServerClient::directory
// of another. Must not outlive the agent. Thread-compatible.
class ParameterServers {
 public:
  using Values = std::vector<std::pair<std::string, Tensor>>;
  // Makes a shard at each server, with these values, f32; where there are
  // backups each at the server after it. Waits as long as the agent's default
  // timeout.
  static absl::StatusOr<std::unique_ptr<ParameterServers>> Make(
      rpc::Agent& agent, const std::vector<std::string>& servers,
      const ServerOptions& options, const Values& values);

  // Writes what the shards are to a folder that all servers see, and `trainer`,
  // the caller's own: values, the state of their rule, rows, versions. Returns
  // when it is on the disk; trainers go on meanwhile. Each shard is saved
  // between two of its updates: where all are to be of one, let no push be
  // under way. Trainers are not saved.
  absl::Status Save(const CheckpointOptions& to, int64_t step,
                    const NamedTensors& trainer = {}) const;

  struct Resumed {
    std::unique_ptr<ParameterServers> servers;
    int64_t step = 0;
    NamedTensors trainer;  // as Save was given it
  };
  // Servers as Make gives them, any number, with the newest checkpoint of a
  // folder in place of the values, or as ResumeFrom says. Where the shards
  // differed in versions or steps, all go on from the largest. InvalidArgument
  // or NotFound for a checkpoint that does not fit keys, tables or rules.
  static absl::StatusOr<Resumed> Resume(rpc::Agent& agent,
                                        const std::vector<std::string>& servers,
                                        const ServerOptions& options,
                                        const Values& values,
                                        const std::string& folder,
                                        IfBroken if_broken);
  ~ParameterServers();
  ParameterServers(const ParameterServers&) = delete;
  ParameterServers& operator=(const ParameterServers&) = delete;

  // What trainers, wherever they are, find the servers by.
  const RRef<ServerDirectory>& directory() const { return directory_; }

 private:
  ParameterServers(rpc::Agent& agent, const ServedKeys& served);
  // `rows`: where tables are not to begin empty.
  static absl::StatusOr<std::unique_ptr<ParameterServers>> Start(
      rpc::Agent& agent, const std::vector<std::string>& servers,
      const ServedKeys& served, const std::vector<ShardImage>& images,
      const std::optional<SavedRows>& rows);

  // A directory at each server, behind this one.
  absl::StatusOr<DirectoryLine> LineUp(const std::vector<std::string>& servers);

  rpc::Agent& agent_;
  const std::shared_ptr<ServerDirectory> local_;
  const RRef<ServerDirectory> directory_;
  const std::shared_ptr<ShardCalls> calls_;
};

}  // namespace baton::dist
