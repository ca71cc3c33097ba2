// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/parameter_server.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/checkpoint_shard.h"
#include "models/distributed/server/saved_shards.h"
#include "models/distributed/server/shard.h"
#include "models/distributed/server/step_threads.h"

namespace baton::dist {
namespace {

using Replicas = ServerDirectory::Replicas;

// Writing many rows to a slow disk takes long.
constexpr std::chrono::minutes kLongestSave{30};

// Returns what the servers will keep; InvalidArgument if that is impossible.
absl::StatusOr<ServedKeys> PlanServers(const std::vector<std::string>& servers,
                                       const ServerOptions& options,
                                       const ParameterServers::Values& values) {
  RETURN_IF_ERROR(Check(options));
  const size_t least = options.backups ? 2 : 1;
  if (servers.size() < least) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", least, " servers or more, got ", servers.size()));
  }
  std::vector<DenseKey> keys;
  for (const auto& [name, value] : values) {
    if (!value.defined() || value.dtype() != DType::kF32) {
      return absl::InvalidArgumentError(
          absl::StrCat("key ", name, " is f32, not ",
                       value.defined() ? value.ToString() : "undefined"));
    }
    keys.push_back({.name = name, .shape = value.shape()});
  }
  ServedKeys served{.options = options, .layout = {}};
  ASSIGN_OR_RETURN(served.layout,
                   PlanKeys(std::move(keys), static_cast<int>(servers.size()),
                            options.part_bytes));
  return served;
}

absl::StatusOr<std::vector<std::string>> CoresOf(
    rpc::Agent& agent, const std::vector<std::string>& servers) {
  std::vector<Future<std::string>> asking;
  for (const std::string& server : servers)
    asking.push_back(agent.Async<&server_calls::Cores>(server));
  return WaitAll(asking).Await(kNoLimit);
}

Future<Replicas> MakeShard(rpc::Agent& agent,
                           const std::vector<std::string>& servers,
                           const ShardSpec& spec,
                           const DirectoryLine& directories) {
  std::vector<Future<RRef<ServerShard>>> making;
  const size_t replicas = spec.options.backups ? 2 : 1;
  for (size_t i = 0; i < replicas; ++i) {
    const size_t at = (static_cast<size_t>(spec.shard) + i) % servers.size();
    making.push_back(
        rpc::Create<ServerShard>(agent, servers[at], spec, directories));
  }
  return WaitAll(making).Then(
      [](const std::vector<RRef<ServerShard>>& made) -> Future<Replicas> {
        Replicas replicas{.primary = made[0],
                          .backup = {made.begin() + 1, made.end()}};
        Future<void> follows = ReadyFuture<void>(absl::OkStatus());
        if (made.size() > 1)
          follows = made[1].Async<&ServerShard::Follow>(made[0].owner(), 1, 0);
        return follows.Then([replicas] {
          return replicas.primary.Async<&ServerShard::Serve>(replicas.backup)
              .Then([replicas] { return replicas; });
        });
      });
}

}  // namespace

void RegisterParameterServers(rpc::Registry& registry) {
  registry.Add<ServerShard>();
  registry.Add<ServerDirectory>();
  registry.AddFunction<&server_calls::Ping>();
  registry.AddFunction<&server_calls::Cores>();
}

ParameterServers::ParameterServers(rpc::Agent& agent, const ServedKeys& served)
    : agent_(agent),
      local_(ServerDirectory::MakeAt(agent, served)),
      directory_(RRef<ServerDirectory>::Make(agent, local_)),
      calls_(ShardCalls::Make(agent, {directory_},
                              local_->Served().layout.shards(), kLongestSave)) {
}

absl::StatusOr<std::unique_ptr<ParameterServers>> ParameterServers::Make(
    rpc::Agent& agent, const std::vector<std::string>& servers,
    const ServerOptions& options, const Values& values) {
  ASSIGN_OR_RETURN(const ServedKeys served,
                   PlanServers(servers, options, values));
  const KeyLayout& layout = served.layout;
  std::vector<Tensor> tensors;
  for (const auto& [name, value] : values) tensors.push_back(value);
  std::vector<ShardImage> images;
  for (int shard = 0; shard < layout.shards(); ++shard) {
    images.push_back(
        {.values = Tensor::Empty(
             {layout.shard_elements[static_cast<size_t>(shard)]})});
    layout.Pack(shard, tensors, images.back().values);
  }
  return Start(agent, servers, served, images, std::nullopt);
}

absl::StatusOr<std::unique_ptr<ParameterServers>> ParameterServers::Start(
    rpc::Agent& agent, const std::vector<std::string>& servers,
    const ServedKeys& served, const std::vector<ShardImage>& images,
    const std::optional<SavedRows>& rows) {
  std::unique_ptr<ParameterServers> made(new ParameterServers(agent, served));
  DirectoryLine line = {made->directory_};
  if (served.options.backups) {
    ASSIGN_OR_RETURN(line, made->LineUp(servers));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> cores,
                   CoresOf(agent, servers));
  std::vector<Future<Replicas>> making;
  for (int shard = 0; shard < served.layout.shards(); ++shard) {
    making.push_back(MakeShard(agent, servers,
                               {.options = served.options,
                                .shard = shard,
                                .shards = served.layout.shards(),
                                .servers = servers,
                                .cores = cores,
                                .image = images[static_cast<size_t>(shard)],
                                .saved = rows},
                               line));
  }
  ASSIGN_OR_RETURN(std::vector<Replicas> shards,
                   WaitAll(making).Await(kNoLimit));
  RETURN_IF_ERROR(made->local_->Set(std::move(shards)));
  return made;
}

absl::StatusOr<DirectoryLine> ParameterServers::LineUp(
    const std::vector<std::string>& servers) {
  const ServedKeys served = local_->Served();
  std::vector<Future<RRef<ServerDirectory>>> making;
  for (const std::string& server : servers)
    making.push_back(rpc::Create<ServerDirectory>(agent_, server, served));
  ASSIGN_OR_RETURN(const auto behind, WaitAll(making).Await(kNoLimit));
  DirectoryLine line = {directory_};
  line.insert(line.end(), behind.begin(), behind.end());
  local_->Stand(line, 0, 1);  // the others' line is known to Close from now on
  std::vector<Future<void>> standing;
  for (size_t i = 1; i < line.size(); ++i) {
    standing.push_back(line[i].Async<&ServerDirectory::Stand>(
        line, static_cast<int32_t>(i), int64_t{1}));
  }
  RETURN_IF_ERROR(WaitAll(standing).Await(kNoLimit));
  return line;
}

absl::Status ParameterServers::Save(const CheckpointOptions& to, int64_t step,
                                    const NamedTensors& trainer) const {
  const ServedKeys served = local_->Served();
  ASSIGN_OR_RETURN(const CheckpointDraft draft,
                   BeginCheckpoint(to.folder, step));
  std::vector<Future<SavedShard>> saving;
  for (int32_t shard = 0; shard < served.layout.shards(); ++shard) {
    saving.push_back(calls_->At<SavedShard>(
        shard, [draft, shard](const RRef<ServerShard>& primary,
                              const rpc::CallOptions& options) {
          return primary.Async<&ServerShard::Save>(options, draft, shard + 1);
        }));
  }
  ASSIGN_OR_RETURN(const std::vector<SavedShard> saved,
                   WaitAll(saving).Await(kNoLimit));
  std::vector<ShardImage> images;
  std::vector<Shard> files;
  for (const SavedShard& shard : saved) {
    images.push_back(shard.dense);
    files.insert(files.end(), shard.files.begin(), shard.files.end());
  }
  NamedTensors state = SavedForm(served.options, served.layout, images);
  state.merge(AsPart(kTrainerPart, trainer));
  ASSIGN_OR_RETURN(files.emplace_back(), WriteShard(draft, 0, state));
  return FinishCheckpoint(draft, files, to.keep);
}

absl::StatusOr<ParameterServers::Resumed> ParameterServers::Resume(
    rpc::Agent& agent, const std::vector<std::string>& servers,
    const ServerOptions& options, const Values& values,
    const std::string& folder, IfBroken if_broken) {
  ASSIGN_OR_RETURN(const ServedKeys served,
                   PlanServers(servers, options, values));
  Resumed resumed;
  const auto load = [&](const Checkpoint& checkpoint) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<ShardImage> images,
                     LoadDense(options, served.layout, checkpoint));
    ASSIGN_OR_RETURN(resumed.trainer, checkpoint.ReadPart(kTrainerPart));
    ASSIGN_OR_RETURN(
        resumed.servers,
        Start(agent, servers, served, images,
              SavedRows{.folder = folder, .step = checkpoint.step()}));
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(resumed.step, ResumeFrom(folder, if_broken, load));
  return resumed;
}

ParameterServers::~ParameterServers() { local_->Close(); }

}  // namespace baton::dist
