// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "models/nn/module.h"
#include "tests/sim/ledger.h"
#include "tests/sim/training.h"

namespace baton::sim {

// What the trainers of a run have done to its pipelines, and whether it may be
// so: fails the run at the step that breaks a promise. A trainer is known by
// its group. Takes no lock. Used by the thread that runs.
class TrainingLog {
 public:
  TrainingLog(const Training& training, const Ledger& ledger)
      : training_(training), ledger_(ledger) {}

  // A trainer makes a pipeline, and this ends in time.
  void Making(int group, uint64_t incarnation);
  // It is made, and goes on after that step; where it has a journal, under that
  // name, and in that epoch.
  void Made(int group, int64_t after, const std::string& line, uint64_t epoch);
  void NotMade(int group, const absl::Status& why);
  // A step begins, and ends in time.
  void Began(int group, int64_t step);
  void Ended(int group, double loss);
  // It was not done, and none follows it.
  void Failed(int group, const absl::Status& why);
  // What a stage said of itself after the trainer's last step.
  void Saw(int group, int stage, const nn::StateMap& state) const;
  // Its pipeline has taken all steps. So has the training, unless another one
  // has taken it up.
  void Over(int group) { over_ = over_ || maker_ == group; }

  bool over() const { return over_; }
  // The names of trainings with a journal.
  const std::set<std::string>& lines() const { return lines_; }

 private:
  struct Trainer {
    uint64_t incarnation = 0;
    uint64_t call = 0;  // the last one
    bool busy = false;  // with it
    int64_t step = 0;
    bool followed = false;  // by another one, before its step began
    // Of its pipeline: when it began to make it, and which beginnings and ends
    // of such that was, among all; 0: it has not ended.
    Nanos since{0};
    uint64_t began = 0, ended = 0;
    bool made = false;  // which gives it these:
    std::string line{};
    uint64_t epoch = 0;
  };
  void AwaitEnd(int group, const std::string& what);
  // Whether it commands the training that this one has a pipeline of, or had
  // when it was made.
  static bool HasFollowed(const Trainer& other, const Trainer& trainer);
  // Whether another one may have claimed the training since this one has.
  bool MayBeFollowed(int group) const;
  // Workers that were no trainers, since a step had ended whose state is safe.
  size_t OthersLost() const;

  const Training& training_;
  const Ledger& ledger_;
  std::map<int, Trainer> trainers_;
  uint64_t makings_ = 0;  // that have begun or ended
  int maker_ = -1;        // whose claim to the training is the last one
  int64_t last_ = 0;      // step that anybody was told of
  // When the steps before it had ended, of which one has a state that is safe,
  // and it had.
  std::array<Nanos, Training::kMostRedone + 1> ended_{};
  std::set<std::string> lines_;
  bool over_ = false;
};

}  // namespace baton::sim
