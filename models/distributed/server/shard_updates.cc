// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// How updates of a shard are numbered, applied and sent to the backup.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {

void ServerShard::PostPush(const WaitingPtr& waiting) {
  strand_.Run([self = shared_from_this(), waiting] { self->Admit(waiting); });
}

void ServerShard::ApplyPushedOf(TrainerId trainer) {
  if (std::any_of(pushed_.begin(), pushed_.end(), [&](const ShardUpdate& push) {
        return push.trainer == trainer;
      }))
    ApplyPushed();
}

void ServerShard::ApplyPushed() {
  if (pushed_.empty()) return;
  const auto pushes = std::exchange(pushed_, {});
  Change([&] { state_.ApplyPushes(pushes); });
}

void ServerShard::Apply(const ShardUpdate& update) {
  Change([&] { state_.Apply(update); });
}

void ServerShard::Change(const std::function<void()>& change) {
  const absl::Status status = CatchErrors(change);
  if (!status.ok()) {
    Fence(Annotate(status, "an update failed"));
  } else if (role_ == Role::kPrimary && !waiting_.empty()) {
    Post([](ServerShard& self) { self.Wake(); });
  }
}

Future<void> ServerShard::Log(ShardUpdate update) {
  update.index = next_index_++;
  Promise<void> replicated;
  if (backup_.empty() && !copying_) {
    replicated.Set(absl::OkStatus());
  } else {
    unacknowledged_[update.index] = {update, replicated};
    if (!copying_) SendToBackup(update);
  }
  if (update.kind == ShardUpdate::Kind::kPush &&
      state_.options().mode == Consistency::kAsynchronous) {
    pushed_.push_back(std::move(update));
    if (pushed_.size() == 1) Post([](ServerShard&) {});
  } else {
    ApplyPushed();
    Apply(update);
  }
  return replicated.future();
}

void ServerShard::SendToBackup(const ShardUpdate& update) {
  backup_.front()
      .Async<&ServerShard::Replicate>(epoch_, update)
      .OnReady([self = shared_from_this(), epoch = epoch_,
                index = update.index](const absl::Status& status) {
        self->Post([epoch, index, status](ServerShard& self) {
          self.OnReplicated(epoch, index, status);
        });
      });
}

void ServerShard::OnReplicated(int64_t epoch, int64_t index,
                               const absl::Status& status) {
  if (epoch != epoch_ || role_ != Role::kPrimary) return;
  if (!status.ok()) {
    absl::IsAborted(status) ? Fence(status) : GoAlone();
    return;
  }
  const auto found = unacknowledged_.find(index);
  if (found == unacknowledged_.end()) return;
  const Promise<void> promise = found->second.promise;
  unacknowledged_.erase(found);
  promise.Set(absl::OkStatus());
}

Future<void> ServerShard::Replicate(int64_t epoch, const ShardUpdate& update) {
  Unacknowledged parked{.update = update};
  if (update.kind == ShardUpdate::Kind::kPush &&
      state_.options().mode != Consistency::kBulkSynchronous)
    parked.update.prepared = state_.Prepare(update.gradients);
  Future<void> applied = parked.promise.future();
  Post([epoch, parked](ServerShard& self) {
    if (self.role_ != Role::kBackup || epoch != self.epoch_) {
      parked.promise.Set(absl::AbortedError(
          absl::StrCat("shard ", self.shard_, " is in epoch ", self.epoch_,
                       " at worker ", self.agent_.self().name)));
    } else {
      self.parked_[parked.update.index] = parked;
      self.ApplyParked();
    }
  });
  return applied;
}

void ServerShard::ApplyParked() {
  while (!parked_.empty() && parked_.begin()->first <= next_index_) {
    const Unacknowledged next = std::move(parked_.begin()->second);
    parked_.erase(parked_.begin());
    if (next.update.index == next_index_) {
      ++next_index_;
      Apply(next.update);
      if (role_ == Role::kFenced) {
        next.promise.Set(NotServing());
        return;
      }
    }
    next.promise.Set(absl::OkStatus());
  }
}

}  // namespace baton::dist
