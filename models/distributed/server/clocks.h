// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/distributed/server/cut.h"
#include "models/distributed/server/options.h"

namespace baton::dist {

// A trainer as a shard sees it.
struct ServedTrainer {
  int64_t rank = 0;  // orders the gradients of a round
  std::string worker;
  uint64_t incarnation = 0;
  int64_t clock = 0;     // number of pushes, counted from where it joined
  int64_t sequence = 0;  // of its last push
  static constexpr auto Fields() {
    using T = ServedTrainer;
    return std::tuple{&T::rank, &T::worker, &T::incarnation, &T::clock,
                      &T::sequence};
  }
};

// The complete state of a shard's clocks.
struct ClockReadings {
  std::map<TrainerId, ServedTrainer> trainers{};
  int64_t joined = 0;  // number of trainers so far, including those that left
  int64_t round = 0;   // the open round, in bulk-synchronous mode
  std::map<TrainerId, int64_t> pushed{};  // the pushes in the open round
  int64_t furthest = 0;                   // the highest clock ever seen
  Cut cut{};                              // what the values have
  // Those of ServerOptions::trainer_workers whose trainer has joined, or was
  // given up before.
  std::vector<std::string> settled{};
  static constexpr auto Fields() {
    using R = ClockReadings;
    return std::tuple{&R::trainers, &R::joined, &R::round,  &R::pushed,
                      &R::furthest, &R::cut,    &R::settled};
  }
};

// Which trainers use a shard, how far each of them is, and which must wait. Its
// decisions depend only on the order of the calls, so that a backup decides the
// same. Thread-compatible.
class Clocks {
 public:
  explicit Clocks(const ServerOptions& options, ClockReadings readings = {})
      : mode_(options.mode),
        staleness_(mode_ == Consistency::kBoundedStale ? options.staleness : 0),
        expected_(options.trainers),
        now_(std::move(readings)) {
    for (const rpc::WorkerInfo& worker : options.trainer_workers)
      workers_.push_back(worker.name);
  }

  // A new trainer counts from the next round that has not begun; without rounds
  // it starts at the slowest trainer's clock. Returns false if it has already
  // joined.
  bool Join(TrainerId id, ServedTrainer trainer);
  // A trainer that has not pushed yet counts from this clock on, unless it
  // counts only from a later one.
  void Start(TrainerId id, int64_t clock);
  void Leave(TrainerId id);
  // Whether a trainer of ServerOptions::trainer_workers has yet to join from
  // that worker. If it is given up, nobody waits for it.
  bool Awaits(const std::string& worker) const;
  void GiveUp(const std::string& worker);
  // Returns null if the trainer has not joined.
  const ServedTrainer* Find(TrainerId id) const;
  const std::map<TrainerId, ServedTrainer>& trainers() const {
    return now_.trainers;
  }
  const ClockReadings& readings() const { return now_; }
  const Cut& cut() const { return now_.cut; }

  // Records a push of the trainer, for which MayGo was true: the values have
  // it, or will have it with the end of the open round.
  void Count(TrainerId id, int64_t sequence);
  // Returns false while the trainer must wait for others before it pulls or
  // pushes.
  bool MayGo(TrainerId id) const;
  // The clock of the slowest trainer; without trainers, the highest clock.
  int64_t Slowest() const;

  // For bulk-synchronous mode: the open round, whether it is complete, and its
  // end.
  int64_t round() const { return now_.round; }
  bool RoundIsWhole() const;
  void EndRound();

 private:
  // Goes on to the first round in which one of the trainers will push.
  void SkipRounds();
  // Whether no expected trainer is missing any more.
  bool AllHaveCome() const;

  const Consistency mode_;
  const int64_t staleness_;
  const int64_t expected_;
  std::vector<std::string> workers_;  // does not change
  ClockReadings now_;
};

}  // namespace baton::dist
