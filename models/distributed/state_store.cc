// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/state_store.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/state_stores.h"

namespace baton::dist {
namespace {

constexpr std::ptrdiff_t kKept = 2;
constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
constexpr int64_t kLast = std::numeric_limits<int64_t>::max();

absl::Status TakenOver(const rpc::WorkerInfo& trainer) {
  return absl::PermissionDeniedError(absl::StrCat(
      "worker ", trainer.name, " (incarnation ", trainer.incarnation,
      ") has taken over the pipeline, which this trainer no longer commands"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<StateStore>> StateStore::Make(
    rpc::CallContext& call, const StateClaim& claim) {
  if (!claim.pipeline.empty())
    return StateStores::Of(call.agent())->Claim(call.caller(), claim);
  auto store = std::make_shared<StateStore>();
  RETURN_IF_ERROR(store->Claim(call.caller(), claim));
  return store;
}

uint64_t ClaimedEpoch(rpc::CallContext& call, const std::string& pipeline) {
  return StateStores::Of(call.agent())->EpochOf(pipeline);
}

absl::Status StateStore::Claim(const rpc::WorkerInfo& trainer,
                               const StateClaim& claim) {
  std::map<std::pair<int32_t, int64_t>, NamedTensors> dropped;
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckTrainerLocked(claim.epoch));
  const bool same = trainer_.incarnation == trainer.incarnation;
  if (claim.epoch < epoch_ || (claim.epoch == epoch_ && epoch_ > 0 && !same))
    return TakenOver(trainer_);
  epoch_ = claim.epoch;
  trainer_ = trainer;
  if (!claim.takes_up) dropped.swap(states_);
  return absl::OkStatus();
}

absl::Status StateStore::CheckTrainerLocked(uint64_t epoch) const {
  if (epoch / kEpochsOfTrainer >= epoch_ / kEpochsOfTrainer)
    return absl::OkStatus();
  return TakenOver(trainer_);
}

absl::Status StateStore::CheckEpochLocked(uint64_t epoch, int64_t step) const {
  RETURN_IF_ERROR(CheckTrainerLocked(epoch));
  if (epoch >= epoch_) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("the state after step ", step,
                   " is of a pipeline that has been made anew since"));
}

absl::Status StateStore::Check(uint64_t epoch) {
  const MutexLock lock(mutex_);
  return CheckTrainerLocked(epoch);
}

absl::StatusOr<std::vector<KeptState>> StateStore::Fence(uint64_t epoch) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckTrainerLocked(epoch));
  epoch_ = std::max(epoch_, epoch);
  std::vector<KeptState> kept;
  for (const auto& [key, state] : states_)
    kept.push_back({key.first, key.second});
  return kept;
}

absl::Status StateStore::Put(uint64_t epoch, const KeptState& key,
                             const NamedTensors& state) {
  std::vector<NamedTensors> dropped;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckEpochLocked(epoch, key.step));
  const auto end = states_.upper_bound({key.place, kLast});
  for (auto at = states_.lower_bound({key.place, key.step}); at != end;) {
    dropped.push_back(std::move(at->second));
    at = states_.erase(at);
  }
  states_[{key.place, key.step}] = state;
  auto oldest = states_.lower_bound({key.place, kFirst});
  while (std::distance(oldest, end) > kKept) {
    dropped.push_back(std::move(oldest->second));
    oldest = states_.erase(oldest);
  }
  return absl::OkStatus();
}

absl::StatusOr<NamedTensors> StateStore::Get(uint64_t epoch,
                                             const KeptState& key) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckTrainerLocked(epoch));
  const auto found = states_.find({key.place, key.step});
  if (found != states_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no state of place ",
                                          key.place, " after step ", key.step));
}

absl::Status StateStore::Drop(uint64_t epoch, const KeptState& key) {
  NamedTensors dropped;
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckEpochLocked(epoch, key.step));
  const auto found = states_.find({key.place, key.step});
  if (found == states_.end()) return absl::OkStatus();
  dropped = std::move(found->second);
  states_.erase(found);
  return absl::OkStatus();
}

}  // namespace baton::dist
