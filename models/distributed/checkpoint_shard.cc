// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/checkpoint_shard.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/engine.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// "model." and what the names of a module's tensors begin with.
std::string NamePrefix(const char* part, const std::string& prefix) {
  return absl::StrCat(part, ".", prefix);
}

void AddPrefixed(const std::string& prefix, const NamedTensors& from,
                 NamedTensors& to) {
  for (const auto& [name, tensor] : from) to[prefix + name] = tensor;
}

// Those of `wanted` that `from` has under the prefix; the module says what is
// missing.
nn::StateMap Picked(const NamedTensors& from, const std::string& prefix,
                    const nn::StateMap& wanted) {
  nn::StateMap picked;
  for (const auto& [name, tensor] : wanted) {
    const auto found = from.find(prefix + name);
    if (found != from.end()) picked[name] = found->second;
  }
  return picked;
}

// "PART.parameter.slot", for parameters with these names.
std::vector<std::string> StateNames(const std::vector<std::string>& of_part,
                                    const std::string& part,
                                    const std::vector<std::string>& names) {
  const std::set<std::string> parameters(names.begin(), names.end());
  std::vector<std::string> found;
  for (const std::string& name : of_part) {
    const size_t begin = part.size() + 1, dot = name.rfind('.');
    if (dot > begin && parameters.count(name.substr(begin, dot - begin)) > 0)
      found.push_back(name);
  }
  return found;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerShard>> WorkerShard::Make(
    rpc::CallContext& call, const std::vector<ShardModule>& modules,
    const std::vector<ShardOptimizer>& optimizers) {
  const auto engine = call.agent().service<Engine>();
  if (engine == nullptr) {
    return absl::FailedPreconditionError(
        "this worker has no distributed autograd: call dist::Attach");
  }
  auto parts = std::make_shared<Parts>();
  for (const ShardModule& module : modules) {
    ASSIGN_OR_RETURN(const auto held, module.module.LocalValue());
    parts->modules.push_back({module.prefix, held->module});
    parts->locks.push_back(held->lock);
  }
  for (const ShardOptimizer& optimizer : optimizers) {
    ASSIGN_OR_RETURN(auto host, optimizer.host.LocalValue());
    parts->optimizers.push_back({optimizer.part, std::move(host)});
  }
  parts->locks.push_back(engine->parameters());
  return std::unique_ptr<WorkerShard>(new WorkerShard(std::move(parts)));
}

NamedTensors WorkerShard::Parts::State() const {
  NamedTensors state;
  for (const auto& [prefix, module] : modules) {
    AddPrefixed(NamePrefix(kModelPart, prefix), module->StateDict(), state);
    AddPrefixed(NamePrefix(kGeneratorPart, prefix), module->GeneratorState(),
                state);
  }
  for (const auto& [part, host] : optimizers)
    state.merge(AsPart(part, host->StateHeld()));
  return state;
}

// The save before may have failed elsewhere, and still be written here.
void WorkerShard::Writing::Begin(const NamedTensors& state,
                                 const CheckpointDraft& draft, int32_t number) {
  const MutexLock lock(mutex);
  if (written.valid() && !written.ready()) copies.Leave();
  const Promise<Shard> promise;
  pool.Post([mine = copies.Begin(state), draft, number, promise] {
    promise.Set(
        CatchErrors([&] { return WriteShard(draft, number, mine.Wait()); }));
  });
  written = promise.future();
}

Future<void> WorkerShard::Copy(rpc::CallContext& call,
                               const CheckpointDraft& draft, int32_t number) {
  return rpc::WithObjects(call, parts_->locks, rpc::Access::kShared,
                          [parts = parts_, writing = writing_, draft, number] {
                            writing->Begin(parts->State(), draft, number);
                          });
}

Future<Shard> WorkerShard::Written() {
  const MutexLock lock(writing_->mutex);
  return writing_->written.valid()
             ? writing_->written
             : ReadyFuture<Shard>(absl::FailedPreconditionError(
                   "nothing was copied to be written"));
}

// All is read before anything is changed.
absl::StatusOr<std::vector<std::string>> WorkerShard::Parts::Load(
    const Checkpoint& checkpoint) const {
  std::set<std::string> there;
  for (std::string& name : checkpoint.Names()) there.insert(std::move(name));
  std::vector<std::string> names;
  const auto want = [&](const std::string& prefix, const nn::StateMap& state) {
    for (const auto& [name, tensor] : state)
      if (there.count(prefix + name) > 0) names.push_back(prefix + name);
  };
  for (const auto& [prefix, module] : modules) {
    want(NamePrefix(kModelPart, prefix), module->StateDict());
    want(NamePrefix(kGeneratorPart, prefix), module->GeneratorState());
  }
  for (const auto& [part, host] : optimizers) {
    const auto more = StateNames(checkpoint.Names(part), part, host->names());
    names.insert(names.end(), more.begin(), more.end());
  }
  ASSIGN_OR_RETURN(const NamedTensors read, checkpoint.Read(names));
  RETURN_IF_ERROR(LoadWeights(read).status());
  for (const auto& [prefix, module] : modules) {
    RETURN_IF_ERROR(module->LoadGeneratorState(Picked(
        read, NamePrefix(kGeneratorPart, prefix), module->GeneratorState())));
  }
  for (const auto& [part, host] : optimizers) {
    optim::StateDict state;
    for (const std::string& name :
         StateNames(checkpoint.Names(part), part, host->names()))
      state[name.substr(part.size() + 1)] = read.at(name);
    RETURN_IF_ERROR(host->LoadStateHeld(state));
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> WorkerShard::Parts::LoadWeights(
    const NamedTensors& weights) const {
  std::vector<std::string> names;
  for (const auto& [prefix, module] : modules) {
    const std::string in_file = NamePrefix(kModelPart, prefix);
    const nn::StateMap state = Picked(weights, in_file, module->StateDict());
    RETURN_IF_ERROR(module->LoadStateDict(state));
    for (const auto& [name, tensor] : state) names.push_back(in_file + name);
  }
  return names;
}

Future<std::vector<std::string>> WorkerShard::Load(rpc::CallContext& call,
                                                   const std::string& folder,
                                                   int64_t step) {
  return rpc::WithObjects(call, parts_->locks, rpc::Access::kExclusive,
                          [parts = parts_, folder,
                           step]() -> absl::StatusOr<std::vector<std::string>> {
                            ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                                             Checkpoint::Open(folder, step));
                            return parts->Load(checkpoint);
                          });
}

Future<std::vector<std::string>> WorkerShard::LoadWeights(
    rpc::CallContext& call, const std::string& path) {
  return rpc::WithObjects(
      call, parts_->locks, rpc::Access::kExclusive,
      [parts = parts_, path]() -> absl::StatusOr<std::vector<std::string>> {
        ASSIGN_OR_RETURN(const SafeTensors weights, ReadSafeTensors(path));
        auto names = parts->LoadWeights(AsPart(kModelPart, weights.tensors));
        if (!names.ok()) return Annotate(names.status(), path);
        return names;
      });
}

}  // namespace baton::dist
