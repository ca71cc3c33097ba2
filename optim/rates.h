// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor.h"
#include "optim/schedule.h"

namespace baton::optim {

// The learning rates of an optimizer's groups, here and on the GPUs that were
// asked for, and the schedule that they follow. Thread-compatible.
class Rates {
 public:
  // `base`: of each group, to begin with.
  explicit Rates(std::vector<double> base) : base_(base), now_(base) {
    on_gpu_.resize(base.size());
  }

  size_t groups() const { return now_.size(); }
  const std::vector<double>& now() const { return now_; }

  // Throws Error within a recording: the rate is what replays may change.
  void Set(size_t group, double lr);
  // f64 [], which Set writes; undefined for a CPU. Throws Error where it would
  // be made within a recording.
  Tensor On(size_t group, Device device);

  // Gives the rates for the step to come, and those after it.
  void Follow(Schedule schedule);
  // A step was taken.
  void Advance();

  // "steps", and "lr" and "initial_lr" of each group.
  std::map<std::string, Tensor> Export() const;
  // What is not there stays. InvalidArgument, with nothing changed, where
  // groups are more or fewer.
  absl::Status Import(const std::map<std::string, Tensor>& state);
  static bool IsKey(const std::string& key);

 private:
  void Obey();

  std::vector<double> base_, now_;
  std::vector<std::map<int, Tensor>> on_gpu_;
  Schedule schedule_;
  int64_t steps_ = 0;
};

// Throws Error within a recording, whose replays would repeat `what`.
void RequireNoRecording(const char* what);

}  // namespace baton::optim
