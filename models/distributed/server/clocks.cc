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
          ? now_.round + (!now_.pushed.empty() && AllHaveCome() ? 1 : 0)
          : Slowest();
  if (Awaits(trainer.worker)) now_.settled.push_back(trainer.worker);
  now_.trainers.emplace(id, std::move(trainer));
  ++now_.joined;
  return true;
}

void Clocks::Start(TrainerId id, int64_t clock) {
  const auto found = now_.trainers.find(id);
  if (found == now_.trainers.end() || found->second.sequence > 0) return;
  found->second.clock = std::max(found->second.clock, clock);
  now_.furthest = std::max(now_.furthest, found->second.clock);
  SkipRounds();
}

void Clocks::Leave(TrainerId id) {
  if (now_.trainers.erase(id) == 0) return;
  if (!now_.pushed.contains(id)) now_.cut[id].left = true;
  SkipRounds();
}

// They would be without a push: of trainers that have left there is none, and
// those that are there start later, because other shards were further.
void Clocks::SkipRounds() {
  if (now_.pushed.empty() && !now_.trainers.empty())
    now_.round = std::max(now_.round, Slowest());
}

bool Clocks::Awaits(const std::string& worker) const {
  return std::count(workers_.begin(), workers_.end(), worker) >
         std::count(now_.settled.begin(), now_.settled.end(), worker);
}

void Clocks::GiveUp(const std::string& worker) {
  while (Awaits(worker)) now_.settled.push_back(worker);
  SkipRounds();
}

bool Clocks::AllHaveCome() const {
  return workers_.empty() ? now_.joined >= expected_
                          : now_.settled.size() == workers_.size();
}

const ServedTrainer* Clocks::Find(TrainerId id) const {
  const auto found = now_.trainers.find(id);
  return found == now_.trainers.end() ? nullptr : &found->second;
}

void Clocks::Count(TrainerId id, int64_t sequence) {
  ServedTrainer& trainer = now_.trainers.at(id);
  trainer.sequence = sequence;
  now_.furthest = std::max(now_.furthest, ++trainer.clock);
  if (mode_ == Consistency::kBulkSynchronous) {
    now_.pushed[id] = sequence;
  } else {
    now_.cut[id].last = sequence;
  }
}

bool Clocks::MayGo(TrainerId id) const {
  const ServedTrainer* trainer = Find(id);
  if (trainer == nullptr || mode_ == Consistency::kAsynchronous) return true;
  if (mode_ == Consistency::kBulkSynchronous)
    return trainer->clock <= now_.round;
  return trainer->clock - Slowest() <= staleness_;
}

int64_t Clocks::Slowest() const {
  if (!AllHaveCome()) return 0;
  int64_t slowest = now_.furthest;
  for (const auto& [id, trainer] : now_.trainers)
    slowest = std::min(slowest, trainer.clock);
  return slowest;
}

bool Clocks::RoundIsWhole() const {
  return !now_.pushed.empty() && AllHaveCome() &&
         std::all_of(
             now_.trainers.begin(), now_.trainers.end(),
             [&](const auto& t) { return t.second.clock > now_.round; });
}

void Clocks::EndRound() {
  ++now_.round;
  for (const auto& [id, sequence] : now_.pushed)
    now_.cut[id] = {.last = sequence, .left = Find(id) == nullptr};
  now_.pushed.clear();
}

}  // namespace baton::dist
