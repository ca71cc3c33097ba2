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

// The learning rates of an optimizer's groups, on the host and on the GPUs that
// On was called for, and their schedule. Thread-compatible.
class Rates {
 public:
  // `base` has the initial rate of each group.
  explicit Rates(std::vector<double> base) : base_(base), now_(base) {
    on_gpu_.resize(base.size());
  }

  size_t groups() const { return now_.size(); }
  const std::vector<double>& now() const { return now_; }
  // The first group's rate divided by its initial one; 1 if that was 0.
  double factor() const { return base_[0] == 0 ? 1 : now_[0] / base_[0]; }

  // Throws Error within a recording, because replays read the rate from memory.
  void Set(size_t group, double lr);
  // Returns an f64 [] that Set updates; undefined for a CPU. Throws Error if it
  // would have to be made within a recording.
  Tensor On(size_t group, Device device);

  // The schedule sets the rates for the next step and those after it.
  void Follow(Schedule schedule);
  // Records that a step was taken.
  void Advance();
  // Takes that back.
  void GoBack();

  // "steps", and "lr" and "initial_lr" of each group.
  std::map<std::string, Tensor> Export() const;
  // Missing entries stay unchanged. Returns InvalidArgument, and changes
  // nothing, if the number of groups differs.
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
