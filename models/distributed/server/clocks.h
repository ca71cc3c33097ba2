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

#include "models/distributed/server/options.h"

namespace baton::dist {

// Given by the directory, never twice.
enum class TrainerId : uint64_t {};

// A trainer as a shard knows it.
struct ServedTrainer {
  int64_t rank = 0;  // in the order in which a round's gradients are added
  std::string worker;
  uint64_t incarnation = 0;
  int64_t clock = 0;     // pushes, counted from where it joined
  int64_t sequence = 0;  // of its last push
  static constexpr auto Fields() {
    using T = ServedTrainer;
    return std::tuple{&T::rank, &T::worker, &T::incarnation, &T::clock,
                      &T::sequence};
  }
};

// All that the clocks of a shard have been told.
struct ClockReadings {
  std::map<TrainerId, ServedTrainer> trainers{};
  int64_t joined = 0;    // so far, those that left among them
  int64_t round = 0;     // of bulk-synchronous mode: the open one
  int64_t pushed = 0;    // into the open round
  int64_t furthest = 0;  // clock ever seen
  static constexpr auto Fields() {
    using R = ClockReadings;
    return std::tuple{&R::trainers, &R::joined, &R::round, &R::pushed,
                      &R::furthest};
  }
};

// Who trains at a shard, how far each is, and who has to wait for whom. Decides
// by what it was told in order alone, so that a backup decides the same.
// Thread-compatible.
class Clocks {
 public:
  explicit Clocks(const ServerOptions& options, ClockReadings readings = {})
      : mode_(options.mode),
        staleness_(mode_ == Consistency::kBoundedStale ? options.staleness : 0),
        expected_(options.trainers),
        now_(std::move(readings)) {}

  // A newcomer counts from the next round on that has not begun; where rounds
  // are none, it is as far as the slowest. False for one that is there.
  bool Join(TrainerId id, ServedTrainer trainer);
  void Leave(TrainerId id);
  // Null for one that is not there.
  const ServedTrainer* Find(TrainerId id) const;
  const std::map<TrainerId, ServedTrainer>& trainers() const {
    return now_.trainers;
  }
  const ClockReadings& readings() const { return now_; }

  // A push of the trainer, which may go on, was taken.
  void Count(TrainerId id, int64_t sequence);
  // False while the trainer has to wait for others before it pulls or pushes.
  bool MayGo(TrainerId id) const;
  // What the slowest has reached; of a shard without trainers, the furthest.
  int64_t Slowest() const;

  // Of bulk-synchronous mode: the round that is open, whether it has all that
  // it waits for, and its end.
  int64_t round() const { return now_.round; }
  bool RoundIsWhole() const;
  void EndRound();

 private:
  const Consistency mode_;
  const int64_t staleness_;
  const int64_t expected_;
  ClockReadings now_;
};

}  // namespace baton::dist
