// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/training_log.h"

#include <algorithm>
#include <bit>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tests/sim/world.h"

namespace baton::sim {
namespace {

// A step may take its own limit, then a recovery that begins its last try at
// its own limit, and then all limits of that try (pipeline_trainer.cc).
constexpr Nanos kLongest = std::chrono::seconds(300);

}  // namespace

void TrainingLog::AwaitEnd(int group, const std::string& what) {
  Trainer& trainer = trainers_[group];
  trainer.busy = true;
  const uint64_t call = ++trainer.call;
  World::Get().After(0, kLongest, [this, group, call, what] {
    const Trainer& now = trainers_.at(group);
    World& world = World::Get();
    if (now.call != call || !now.busy || !world.alive(group)) return;
    world.Fail(
        absl::StrCat(what, " of trainer ", world.name(group), " does not end"));
  });
}

bool TrainingLog::HasFollowed(const Trainer& other, const Trainer& trainer) {
  return !trainer.made || other.line != trainer.line ||
         other.epoch > trainer.epoch;
}

// Until a pipeline is made, the moment of its claim is unknown.
bool TrainingLog::MayBeFollowed(int group) const {
  const Trainer& trainer = trainers_.at(group);
  return absl::c_any_of(trainers_, [&](const auto& entry) {
    const auto& [each, other] = entry;
    if (each == group) return false;
    return other.ended == 0 ||
           (other.ended > trainer.began && HasFollowed(other, trainer));
  });
}

size_t TrainingLog::OthersLost() const {
  size_t lost = ledger_.lost(ended_.front());
  for (const auto& [group, trainer] : trainers_)
    lost -= ledger_.IsLost(trainer.incarnation, ended_.front()) ? 1 : 0;
  return lost;
}

void TrainingLog::Making(int group, uint64_t incarnation) {
  const World& world = World::Get();
  for (auto& [each, other] : trainers_)
    if (other.ended == 0 && !world.alive(each)) other.ended = makings_;
  Trainer& trainer = trainers_[group];
  trainer = {.incarnation = incarnation,
             .call = trainer.call,
             .since = world.now(),
             .began = ++makings_};
  AwaitEnd(group, "the making of a pipeline");
}

void TrainingLog::Made(int group, int64_t after, const std::string& line,
                       uint64_t epoch) {
  World& world = World::Get();
  Trainer& trainer = trainers_.at(group);
  trainer.busy = false;
  trainer.ended = ++makings_;
  trainer.step = after;
  trainer.made = true;
  trainer.line = line;
  trainer.epoch = epoch;
  world.Mix(static_cast<uint64_t>(after));
  if (!line.empty()) lines_.insert(line);
  // Another trainer may have taken over already.
  if (maker_ >= 0 && maker_ != group && !line.empty() &&
      !HasFollowed(trainer, trainers_.at(maker_)))
    return;
  maker_ = group;
  // States of later steps may not have been kept and recorded yet.
  if (!line.empty() && after < last_ - Training::kMostRedone &&
      OthersLost() == 0) {
    world.Fail(absl::StrCat("a trainer begins after step ", after,
                            ", no other worker was lost, and step ", last_,
                            " had been done"));
  }
  last_ = after;
  ended_.fill(trainer.since);
}

void TrainingLog::NotMade(int group, const absl::Status& why) {
  Trainer& trainer = trainers_.at(group);
  trainer.busy = false;
  trainer.ended = ++makings_;
  World::Get().Mix(static_cast<uint64_t>(why.code()));
  if (!absl::IsPermissionDenied(why) || MayBeFollowed(group)) return;
  World::Get().Fail(absl::StrCat(
      "a trainer is refused, and no other one has begun: ", why.ToString()));
}

void TrainingLog::Began(int group, int64_t step) {
  Trainer& trainer = trainers_.at(group);
  if (step != trainer.step + 1) {
    World::Get().Fail(
        absl::StrCat("step ", step, " begins after step ", trainer.step));
  }
  trainer.step = step;
  trainer.followed = maker_ != group;
  AwaitEnd(group, absl::StrCat("step ", step));
}

void TrainingLog::Ended(int group, double loss) {
  World& world = World::Get();
  Trainer& trainer = trainers_.at(group);
  trainer.busy = false;
  world.Mix(std::bit_cast<uint64_t>(loss));
  const double wanted = training_.LossOf(trainer.step);
  if (loss != wanted) {
    world.Fail(absl::StrCat("step ", trainer.step, " has the loss ", loss,
                            ", undisturbed ", wanted));
  }
  if (trainer.followed) {
    world.Fail(absl::StrCat("step ", trainer.step, " of ", world.name(group),
                            " began after ", world.name(maker_),
                            " had taken the training up, and was done"));
  }
  if (maker_ != group) return;
  last_ = trainer.step;
  std::shift_left(ended_.begin(), ended_.end(), 1);
  ended_.back() = world.now();
}

void TrainingLog::Failed(int group, const absl::Status& why) {
  World& world = World::Get();
  Trainer& trainer = trainers_.at(group);
  trainer.busy = false;
  world.Mix(static_cast<uint64_t>(why.code()));
  if (MayBeFollowed(group)) return;
  const bool refused = absl::IsPermissionDenied(why);
  // A worker and the one that kept its state were lost; or the trainer was.
  if (!refused && (OthersLost() > 1 ||
                   ledger_.IsLost(trainer.incarnation, ended_.front()))) {
    return;
  }
  world.Fail(absl::StrCat(
      "step ", trainer.step, " fails, ",
      refused ? "no other trainer has begun: " : "no two workers were lost: ",
      why.ToString()));
}

void TrainingLog::Saw(int group, int stage, const nn::StateMap& state) const {
  const int64_t step = trainers_.at(group).step;
  const std::string other = training_.Difference(stage, step, state);
  if (other.empty()) return;
  World::Get().Fail(absl::StrCat("after step ", step, " stage ", stage,
                                 " has another ", other, " than undisturbed"));
}

}  // namespace baton::sim
