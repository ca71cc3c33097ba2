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

// Records what the trainers of a run do to its pipelines, and fails the run at
// the step that breaks a promise. A trainer is identified by its group. Takes
// no lock. Used by the running thread.
class TrainingLog {
 public:
  TrainingLog(const Training& training, const Ledger& ledger)
      : training_(training), ledger_(ledger) {}

  // A trainer begins to make a pipeline; this must end in time.
  void Making(int group, uint64_t incarnation);
  // The pipeline is made and continues after step `after`. With a journal,
  // `line` is its name and `epoch` its epoch.
  void Made(int group, int64_t after, const std::string& line, uint64_t epoch);
  void NotMade(int group, const absl::Status& why);
  // A step begins; it must end in time.
  void Began(int group, int64_t step);
  void Ended(int group, double loss);
  // The step has failed, and the trainer takes no more steps with this
  // pipeline.
  void Failed(int group, const absl::Status& why);
  // Checks a stage's state after the trainer's last step.
  void Saw(int group, int stage, const nn::StateMap& state) const;
  // The trainer's pipeline has taken all steps. The training is over unless
  // another trainer has taken it over.
  void Over(int group) { over_ = over_ || maker_ == group; }

  bool over() const { return over_; }
  // The names of trainings with a journal.
  const std::set<std::string>& lines() const { return lines_; }

 private:
  struct Trainer {
    uint64_t incarnation = 0;
    uint64_t call = 0;  // the last one
    bool busy = false;  // it has not ended
    int64_t step = 0;
    bool followed = false;  // another one took over before its step began
    // When it began to make its pipeline, and the numbers of that beginning and
    // its end among all such events; 0: it has not ended.
    Nanos since{0};
    uint64_t began = 0, ended = 0;
    bool made = false;  // the pipeline is made, with these values:
    std::string line{};
    uint64_t epoch = 0;
  };
  void AwaitEnd(int group, const std::string& what);
  // Returns true if `other` now commands the training of `trainer`'s pipeline,
  // or did so when it was made.
  static bool HasFollowed(const Trainer& other, const Trainer& trainer);
  // Returns true if another trainer may have claimed the training after this
  // one.
  bool MayBeFollowed(int group) const;
  // Returns how many workers that are no trainers were lost since
  // ended_.front().
  size_t OthersLost() const;

  const Training& training_;
  const Ledger& ledger_;
  std::map<int, Trainer> trainers_;
  uint64_t makings_ = 0;  // number of beginnings and ends
  int maker_ = -1;    // the group of the last trainer that claimed the training
  int64_t last_ = 0;  // the last step reported as done
  // When the last steps ended, of which at least one has a state that is safe.
  std::array<Nanos, Training::kMostRedone + 1> ended_{};
  std::set<std::string> lines_;
  bool over_ = false;
};

}  // namespace baton::sim
