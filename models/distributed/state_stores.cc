// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/state_stores.h"

#include <chrono>
#include <utility>

#include "core/status.h"

namespace baton::dist {

std::shared_ptr<StateStores> StateStores::Of(rpc::Agent& agent) {
  static Mutex mutex;
  const MutexLock lock(mutex);
  auto stores = agent.service<StateStores>();
  if (stores != nullptr) return stores;
  stores = std::make_shared<StateStores>(agent.timer());
  agent.SetService(stores);
  agent.WatchMembers([weak = std::weak_ptr(stores)](const auto& event) {
    if (const auto self = weak.lock()) self->Hear(event);
  });
  return stores;
}

absl::StatusOr<std::shared_ptr<StateStore>> StateStores::Claim(
    const rpc::WorkerInfo& trainer, const StateClaim& claim) {
  const MutexLock lock(mutex_);
  Entry& entry = entries_[claim.pipeline];
  if (entry.store == nullptr) entry.store = std::make_shared<StateStore>();
  RETURN_IF_ERROR(entry.store->Claim(trainer, claim));
  if (entry.drop != 0) timer_.Cancel(std::exchange(entry.drop, 0));
  entry.trainer = trainer;
  entry.epoch = claim.epoch;
  entry.grace_ms = claim.grace_ms;
  return entry.store;
}

uint64_t StateStores::EpochOf(const std::string& pipeline) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(pipeline);
  return found == entries_.end() ? 0 : found->second.epoch;
}

void StateStores::Hear(const rpc::MemberEvent& event) {
  using Kind = rpc::MemberEvent::Kind;
  if (event.kind != Kind::kLost && event.kind != Kind::kLeft) return;
  const MutexLock lock(mutex_);
  for (auto& [pipeline, entry] : entries_) {
    if (entry.drop != 0 ||
        entry.trainer.incarnation != event.worker.incarnation)
      continue;
    entry.drop = timer_.After(
        std::chrono::milliseconds(entry.grace_ms),
        [weak = weak_from_this(), name = pipeline, epoch = entry.epoch] {
          if (const auto self = weak.lock()) self->Drop(name, epoch);
        });
  }
}

void StateStores::Drop(const std::string& pipeline, uint64_t epoch) {
  Entry dropped;  // without the lock
  const MutexLock lock(mutex_);
  const auto found = entries_.find(pipeline);
  if (found == entries_.end() || found->second.epoch != epoch) return;
  dropped = std::move(found->second);
  entries_.erase(found);
}

}  // namespace baton::dist
