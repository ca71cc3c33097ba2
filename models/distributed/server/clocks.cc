// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/clocks.h"

#include <algorithm>
#include <utility>

namespace baton::dist {

bool Clocks::Join(TrainerId id, ServedTrainer trainer) {
  if (now_.trainers.contains(id)) return false;
  trainer.clock =
      mode_ == Consistency::kBulkSynchronous
          ? now_.round + (now_.pushed > 0 && now_.joined >= expected_ ? 1 : 0)
          : Slowest();
  now_.trainers.emplace(id, std::move(trainer));
  ++now_.joined;
  return true;
}

void Clocks::Leave(TrainerId id) { now_.trainers.erase(id); }

const ServedTrainer* Clocks::Find(TrainerId id) const {
  const auto found = now_.trainers.find(id);
  return found == now_.trainers.end() ? nullptr : &found->second;
}

void Clocks::Count(TrainerId id, int64_t sequence) {
  ServedTrainer& trainer = now_.trainers.at(id);
  trainer.sequence = sequence;
  now_.furthest = std::max(now_.furthest, ++trainer.clock);
  ++now_.pushed;
}

bool Clocks::MayGo(TrainerId id) const {
  const ServedTrainer* trainer = Find(id);
  if (trainer == nullptr || mode_ == Consistency::kAsynchronous) return true;
  if (mode_ == Consistency::kBulkSynchronous)
    return trainer->clock <= now_.round;
  return trainer->clock - Slowest() <= staleness_;
}

int64_t Clocks::Slowest() const {
  if (now_.joined < expected_) return 0;
  int64_t slowest = now_.furthest;
  for (const auto& [id, trainer] : now_.trainers)
    slowest = std::min(slowest, trainer.clock);
  return slowest;
}

bool Clocks::RoundIsWhole() const {
  return now_.pushed > 0 && now_.joined >= expected_ &&
         std::all_of(
             now_.trainers.begin(), now_.trainers.end(),
             [&](const auto& t) { return t.second.clock > now_.round; });
}

void Clocks::EndRound() {
  ++now_.round;
  now_.pushed = 0;
}

}  // namespace baton::dist
