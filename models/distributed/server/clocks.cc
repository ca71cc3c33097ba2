// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/clocks.h"

#include <algorithm>
#include <utility>

namespace baton::dist {

bool Clocks::Join(TrainerId id, ServedTrainer trainer) {
  if (trainers_.contains(id)) return false;
  trainer.clock = mode_ == Consistency::kBulkSynchronous
                      ? round_ + (pushed_ > 0 && joined_ >= expected_ ? 1 : 0)
                      : Slowest();
  trainers_.emplace(id, std::move(trainer));
  ++joined_;
  return true;
}

void Clocks::Leave(TrainerId id) { trainers_.erase(id); }

const ServedTrainer* Clocks::Find(TrainerId id) const {
  const auto found = trainers_.find(id);
  return found == trainers_.end() ? nullptr : &found->second;
}

void Clocks::Count(TrainerId id, int64_t sequence) {
  ServedTrainer& trainer = trainers_.at(id);
  trainer.sequence = sequence;
  furthest_ = std::max(furthest_, ++trainer.clock);
  ++pushed_;
}

bool Clocks::MayGo(TrainerId id) const {
  const ServedTrainer* trainer = Find(id);
  if (trainer == nullptr || mode_ == Consistency::kAsynchronous) return true;
  if (mode_ == Consistency::kBulkSynchronous) return trainer->clock <= round_;
  return trainer->clock - Slowest() <= staleness_;
}

int64_t Clocks::Slowest() const {
  if (joined_ < expected_) return 0;
  int64_t slowest = furthest_;
  for (const auto& [id, trainer] : trainers_)
    slowest = std::min(slowest, trainer.clock);
  return slowest;
}

bool Clocks::RoundIsWhole() const {
  return pushed_ > 0 && joined_ >= expected_ &&
         std::all_of(trainers_.begin(), trainers_.end(),
                     [&](const auto& t) { return t.second.clock > round_; });
}

void Clocks::EndRound() {
  ++round_;
  pushed_ = 0;
}

}  // namespace baton::dist
