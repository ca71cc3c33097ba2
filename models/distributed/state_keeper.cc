// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/state_keeper.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {

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
          keeping->Keep(step);
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

void StateKeeper::KeepHeld(int64_t step) { keeping_->Keep(step); }

void StateKeeper::Keeping::Keep(int64_t step) {
  const Promise<void> sent;
  {
    const MutexLock lock(mutex);
    safe.erase(safe.begin(), safe.lower_bound(step - 1));
    safe[step] = sent.future();
  }
  // The new copy reuses its memory.
  const auto dropped = own->Drop(spec.epoch, {spec.place, step - 2});
  if (!dropped.ok()) {
    sent.Set(dropped);
    return;
  }
  HostCopy copy = copies[static_cast<size_t>(step % 2)].Begin(state->Tensors());
  // The task may refer to this object, because the pool joins its threads.
  pool.Post([this, step, sent, copy = std::move(copy)] {
    const absl::Status there = CatchErrors([&] {
      return own->Put(spec.epoch, {spec.place, step}, copy.Wait());
    });
    if (!there.ok()) {
      sent.Set(there);
      return;
    }
    Send(step, copy.tensors).OnReady([sent](const absl::Status& status) {
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
  if (found != keeping_->safe.end()) return found->second;
  return ReadyFuture<void>(absl::FailedPreconditionError(
      absl::StrCat("the state after step ", step, " was not kept")));
}

}  // namespace baton::dist
