// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/parameter_server.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

using Replicas = ServerDirectory::Replicas;

absl::StatusOr<KeyLayout> LayoutOf(
    const std::vector<std::pair<std::string, Tensor>>& values, size_t shards,
    const ServerOptions& options) {
  std::vector<DenseKey> keys;
  for (const auto& [name, value] : values) {
    if (!value.defined() || value.dtype() != DType::kF32) {
      return absl::InvalidArgumentError(
          absl::StrCat("key ", name, " is f32, not ",
                       value.defined() ? value.ToString() : "undefined"));
    }
    keys.push_back({.name = name, .shape = value.shape()});
  }
  return PlanKeys(std::move(keys), static_cast<int>(shards),
                  options.part_bytes);
}

Future<Replicas> MakeShard(rpc::Agent& agent,
                           const std::vector<std::string>& servers,
                           const ShardSpec& spec,
                           const RRef<ServerDirectory>& directory) {
  std::vector<Future<RRef<ServerShard>>> making;
  const size_t replicas = spec.options.backups ? 2 : 1;
  for (size_t i = 0; i < replicas; ++i) {
    const size_t at = (static_cast<size_t>(spec.shard) + i) % servers.size();
    making.push_back(
        rpc::Create<ServerShard>(agent, servers[at], spec, directory));
  }
  return WaitAll(making).Then(
      [](const std::vector<RRef<ServerShard>>& made) -> Future<Replicas> {
        const Replicas replicas{.primary = made[0],
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
}

absl::StatusOr<std::unique_ptr<ParameterServers>> ParameterServers::Make(
    rpc::Agent& agent, const std::vector<std::string>& servers,
    const ServerOptions& options,
    const std::vector<std::pair<std::string, Tensor>>& values) {
  RETURN_IF_ERROR(Check(options));
  const size_t least = options.backups ? 2 : 1;
  if (servers.size() < least) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", least, " servers or more, got ", servers.size()));
  }
  ASSIGN_OR_RETURN(const KeyLayout layout,
                   LayoutOf(values, servers.size(), options));
  std::unique_ptr<ParameterServers> made(
      new ParameterServers(std::make_shared<ServerDirectory>(
          ServedKeys{.options = options, .layout = layout})));
  made->directory_ = RRef<ServerDirectory>::Make(agent, made->local_);
  std::vector<Tensor> tensors;
  for (const auto& [name, value] : values) tensors.push_back(value);
  std::vector<Future<Replicas>> making;
  for (int shard = 0; shard < layout.shards(); ++shard) {
    const int64_t elements = layout.shard_elements[static_cast<size_t>(shard)];
    ShardSpec spec{.options = options,
                   .shard = shard,
                   .shards = layout.shards(),
                   .servers = servers,
                   .image = {.values = Tensor::Empty({elements})}};
    layout.Pack(shard, tensors, spec.image.values);
    making.push_back(MakeShard(agent, servers, spec, made->directory_));
  }
  ASSIGN_OR_RETURN(std::vector<Replicas> shards,
                   WaitAll(making).Await(kNoLimit));
  made->local_->Set(std::move(shards));
  return made;
}

ParameterServers::~ParameterServers() { local_->Clear(); }

}  // namespace baton::dist
