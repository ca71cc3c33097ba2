// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/state_keeper.h"

#include "absl/strings/str_cat.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// Replaces tensors on GPUs by copies there.
void CloneAll(NamedTensors& on_gpus) {
  std::vector<Tensor> sources;
  for (const auto& [name, tensor] : on_gpus) sources.push_back(tensor);
  const std::vector<Tensor> clones = ops::CloneMany(sources);
  for (size_t i = 0; auto& [name, tensor] : on_gpus) tensor = clones[i++];
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateKeeper>> StateKeeper::Make(
    rpc::CallContext& call, const KeeperSpec& spec) {
  auto keeping = std::make_shared<Keeping>();
  ASSIGN_OR_RETURN(keeping->state,
                   WorkerState::Make(call, spec.modules, spec.optimizers));
  ASSIGN_OR_RETURN(keeping->own, spec.own.LocalValue());
  RETURN_IF_ERROR(keeping->own->Check(spec.epoch));
  keeping->spec = spec;
  return std::unique_ptr<StateKeeper>(new StateKeeper(std::move(keeping)));
}

Future<void> StateKeeper::Begin(rpc::CallContext& call, int64_t step,
                                const RRef<StateStore>& from) {
  const auto take = [call, keeping = keeping_, step,
                     loads = from.valid()](const NamedTensors& state) {
    return rpc::WithObjects(
        call, keeping->state->locks(), rpc::Access::kExclusive,
        [keeping, step, loads, state]() -> absl::Status {
          RETURN_IF_ERROR(keeping->own->Check(keeping->spec.epoch));
          if (loads) RETURN_IF_ERROR(keeping->state->Load(state));
          const Promise<void> safe = keeping->SafeOf(step);
          ASSIGN_OR_RETURN(auto copied, keeping->Copy(step));
          keeping->Put(step, std::move(copied), safe);
          return absl::OkStatus();
        });
  };
  if (!from.valid()) return take({});
  const KeptState key{keeping_->spec.place, step};
  if (!from.is_owner())
    return from.Async<&StateStore::Get>(call, keeping_->spec.epoch, key)
        .Then(take);
  const auto state = keeping_->own->Get(keeping_->spec.epoch, key);
  return state.ok() ? take(*state) : ReadyFuture<void>(state.status());
}

absl::Status StateKeeper::Check() const {
  return keeping_->own->Check(keeping_->spec.epoch);
}

void StateKeeper::KeepHeld(int64_t step, const Future<double>& agreed) {
  const Promise<void> safe = keeping_->SafeOf(step);
  auto copied = keeping_->Copy(step);
  if (!copied.ok()) {
    safe.Set(copied.status());
    return;
  }
  agreed.OnReady(
      [keeping = std::weak_ptr<Keeping>(keeping_), step, safe,
       copied = *std::move(copied)](const absl::StatusOr<double>& said) {
        const auto there = keeping.lock();
        if (said.ok() && there != nullptr) {
          there->Put(step, copied, safe);
        } else {
          safe.Set(said.ok() ? absl::CancelledError("the keeper was dropped")
                             : said.status());
        }
      });
}

Promise<void> StateKeeper::Keeping::SafeOf(int64_t step) {
  const MutexLock lock(mutex);
  while (safe.size() >= slots.size()) safe.erase(safe.begin());
  return safe[step] = Promise<void>();
}

absl::StatusOr<StateKeeper::Keeping::Copied> StateKeeper::Keeping::Copy(
    int64_t step) {
  Slot& slot = slots[next_slot];
  // The new copy reuses its memory.
  if (slot.step.has_value())
    RETURN_IF_ERROR(own->Drop(spec.epoch, {spec.place, *slot.step}));
  next_slot = (next_slot + 1) % slots.size();
  slot.step = step;
  Copied copied{.slot = &slot};
  for (auto& [name, tensor] : state->Tensors())
    (tensor.device().is_cuda() ? copied.on_gpus : copied.on_cpu)[name] = tensor;
  copied.on_cpu = slot.of_cpu.Begin(copied.on_cpu).Wait();
  CloneAll(copied.on_gpus);
  return copied;
}

void StateKeeper::Keeping::Put(int64_t step, Copied copied,
                               const Promise<void>& sent) {
  // The task may refer to this object, because the pool joins its threads.
  pool.Post([this, step, sent, copied = std::move(copied)]() mutable {
    NamedTensors state = std::move(copied.on_cpu);
    const absl::Status there = CatchErrors([&] {
      HostCopy copy = copied.slot->of_gpus.Begin(copied.on_gpus);
      copied.on_gpus.clear();
      copy.Wait();
      state.merge(std::move(copy.tensors));
      return own->Put(spec.epoch, {spec.place, step}, state);
    });
    if (!there.ok()) {
      sent.Set(there);
      return;
    }
    Send(step, state).OnReady([sent](const absl::Status& status) {
      sent.Set(status);
    });
  });
}

Future<void> StateKeeper::Keeping::Send(int64_t step,
                                        const NamedTensors& copy) const {
  const KeptState key{spec.place, step};
  if (!spec.buddy.is_owner())
    return spec.buddy.Async<&StateStore::Put>(spec.epoch, key, copy);
  const auto here = spec.buddy.LocalValue();
  return ReadyFuture<void>(here.ok() ? (*here)->Put(spec.epoch, key, copy)
                                     : here.status());
}

Future<void> StateKeeper::Safe(int64_t step) {
  const MutexLock lock(keeping_->mutex);
  const auto found = keeping_->safe.find(step);
  if (found != keeping_->safe.end()) return found->second.future();
  return ReadyFuture<void>(absl::FailedPreconditionError(
      absl::StrCat("the state after step ", step, " was not kept")));
}

}  // namespace baton::dist
