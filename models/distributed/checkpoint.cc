// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/checkpoint.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// A large model's part takes a while to write, and to read, on a slow disk.
constexpr std::chrono::minutes kLongWrite{30};

// The modules and optimizers of one worker.
struct WorkerParts {
  rpc::WorkerInfo owner;
  std::vector<ShardModule> modules;
  std::vector<ShardOptimizer> optimizers;
};

WorkerParts& PartsOf(const rpc::WorkerInfo& owner,
                     std::vector<WorkerParts>& workers) {
  const auto found =
      std::find_if(workers.begin(), workers.end(),
                   [&](const WorkerParts& w) { return w.owner == owner; });
  if (found != workers.end()) return *found;
  workers.emplace_back().owner = owner;
  return workers.back();
}

absl::StatusOr<std::vector<WorkerParts>> PartsByWorker(
    rpc::Agent& agent, const std::vector<SavedModule>& modules,
    const std::vector<SavedOptimizer>& optimizers) {
  std::vector<Future<RRef<HeldModule>>> holding;
  for (const SavedModule& module : modules)
    holding.push_back(module.Hold(agent));
  ASSIGN_OR_RETURN(const auto held, WaitAll(holding).Await(kNoLimit));
  std::vector<WorkerParts> workers;
  for (size_t i = 0; i < modules.size(); ++i) {
    PartsOf(modules[i].owner(), workers)
        .modules.push_back({modules[i].prefix(), held[i]});
  }
  for (const SavedOptimizer& optimizer : optimizers) {
    ASSIGN_OR_RETURN(const auto hosts, optimizer.Hosts().Await(kNoLimit));
    for (const RRef<OptimizerHost>& host : hosts) {
      PartsOf(host.owner(), workers)
          .optimizers.push_back({optimizer.part(), host});
    }
  }
  return workers;
}

}  // namespace

void RegisterCheckpoints(rpc::Registry& registry) {
  registry.Add<WorkerShard>();
}

absl::StatusOr<std::unique_ptr<Checkpointer>> Checkpointer::Make(
    rpc::Agent& agent, const CheckpointOptions& options,
    const std::vector<SavedModule>& modules,
    const std::vector<SavedOptimizer>& optimizers) {
  std::set<std::string> parts = {kTrainerPart, kModelPart, kGeneratorPart};
  for (const SavedOptimizer& optimizer : optimizers) {
    if (!parts.insert(optimizer.part()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two parts of the checkpoint are called ",
                       optimizer.part(), ": name the optimizers"));
    }
  }
  std::unique_ptr<Checkpointer> checkpointer(
      new Checkpointer(agent, options, modules, optimizers));
  RETURN_IF_ERROR(checkpointer->MakeAnew());
  return checkpointer;
}

absl::Status Checkpointer::MakeAnew() {
  // A failed save is only logged, because the loss that caused it is known.
  if (const absl::Status saved = Wait(); !saved.ok())
    LogWarning("checkpoint: ", saved.ToString());
  ASSIGN_OR_RETURN(const std::vector<WorkerParts> workers,
                   PartsByWorker(agent_, modules_, optimizers_));
  std::vector<Future<RRef<WorkerShard>>> making;
  for (const WorkerParts& worker : workers) {
    making.push_back(rpc::Create<WorkerShard>(
        agent_, worker.owner, worker.modules, worker.optimizers));
  }
  ASSIGN_OR_RETURN(shards_, WaitAll(making).Await(kNoLimit));
  return absl::OkStatus();
}

rpc::CallOptions Checkpointer::Transfers() const {
  return {.timeout = std::max<std::chrono::milliseconds>(
              agent_.default_timeout(), kLongWrite)};
}

absl::Status Checkpointer::Save(int64_t step, const NamedTensors& trainer) {
  if (guard_) RETURN_IF_ERROR(guard_());
  NamedTensors state = AsPart(kTrainerPart, trainer);
  for (const SavedOptimizer& optimizer : optimizers_)
    state.merge(AsPart(optimizer.part(), optimizer.ExportRates()));
  return writer_.Save(step, state, [this](const CheckpointDraft& draft) {
    return BeginShards(draft);
  });
}

absl::StatusOr<Future<std::vector<Shard>>> Checkpointer::BeginShards(
    const CheckpointDraft& draft) {
  std::vector<Future<void>> copying;
  int32_t number = 1;
  for (const RRef<WorkerShard>& shard : shards_)
    copying.push_back(
        shard.Async<&WorkerShard::Copy>(Transfers(), draft, number++));
  RETURN_IF_ERROR(WaitAll(copying).Await(kNoLimit));
  std::vector<Future<Shard>> writing;
  for (const RRef<WorkerShard>& shard : shards_)
    writing.push_back(shard.Async<&WorkerShard::Written>(Transfers()));
  return WaitAll(writing);
}

absl::StatusOr<Checkpointer::Resumed> Checkpointer::Resume(IfBroken if_broken) {
  RETURN_IF_ERROR(Wait());
  Resumed resumed;
  RETURN_IF_ERROR(ResumeFrom(writer_.options().folder, if_broken,
                             [&](const Checkpoint& checkpoint) {
                               auto loaded = Load(checkpoint);
                               if (!loaded.ok()) return loaded.status();
                               resumed = *std::move(loaded);
                               return absl::OkStatus();
                             })
                      .status());
  return resumed;
}

absl::StatusOr<Checkpointer::Resumed> Checkpointer::Load(
    const Checkpoint& checkpoint) {
  std::vector<Future<std::vector<std::string>>> loading;
  for (const RRef<WorkerShard>& shard : shards_)
    loading.push_back(shard.Async<&WorkerShard::Load>(
        Transfers(), writer_.options().folder, checkpoint.step()));
  ASSIGN_OR_RETURN(auto used, WaitAll(loading).Await(kNoLimit));
  Resumed resumed{.step = checkpoint.step(), .trainer = {}};
  ASSIGN_OR_RETURN(resumed.trainer, checkpoint.ReadPart(kTrainerPart));
  used.push_back(checkpoint.Names(kTrainerPart));
  for (const SavedOptimizer& optimizer : optimizers_) {
    optim::StateDict rates = optimizer.ExportRates();
    std::vector<std::string>& names = used.emplace_back();
    for (const auto& [name, tensor] : AsPart(optimizer.part(), rates))
      names.push_back(name);
    ASSIGN_OR_RETURN(const NamedTensors read, checkpoint.Read(names));
    for (auto& [name, tensor] : rates)
      tensor = read.at(absl::StrCat(optimizer.part(), ".", name));
    RETURN_IF_ERROR(optimizer.ImportRates(rates));
  }
  RETURN_IF_ERROR(CheckUsed(checkpoint.path(), checkpoint.Names(), used));
  return resumed;
}

absl::Status Checkpointer::LoadWeights(const std::string& path) {
  std::vector<Future<std::vector<std::string>>> loading;
  for (const RRef<WorkerShard>& shard : shards_)
    loading.push_back(
        shard.Async<&WorkerShard::LoadWeights>(Transfers(), path));
  ASSIGN_OR_RETURN(const auto used, WaitAll(loading).Await(kNoLimit));
  ASSIGN_OR_RETURN(const SafeTensors weights, ReadSafeTensors(path));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : AsPart(kModelPart, weights.tensors))
    names.push_back(name);
  return CheckUsed(path, names, used);
}

absl::Status Checkpointer::CheckUsed(
    const std::string& what, const std::vector<std::string>& names,
    const std::vector<std::vector<std::string>>& used) const {
  std::set<std::string> left(names.begin(), names.end());
  for (const std::vector<std::string>& of_worker : used)
    for (const std::string& name : of_worker) left.erase(name);
  if (left.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " has ", left.size(), " tensors that nothing here has, such as ",
      *left.begin(), ": it is of another model or optimizer"));
}

}  // namespace baton::dist
