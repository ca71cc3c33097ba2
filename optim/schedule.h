// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::optim {

// The learning rate of a step: of the rate that the parameters' group began
// with, and of the number of steps done before. An optimizer follows one:
//
//   sgd.set_schedule(optim::WarmUp(100, optim::CosineLr({.total = 900})));
//
// What makes them throws Error on options out of range. The shapes are those
// of torch.optim.lr_scheduler.
using Schedule = std::function<double(double base, int64_t steps)>;

struct StepLrOptions {
  int64_t every = 30;
  double factor = 0.1;
};
// base * factor^(steps / every), the quotient rounded down.
Schedule StepLr(const StepLrOptions& options);

struct LinearLrOptions {
  double start = 1.0 / 3;  // factors of the base
  double end = 1;          // reached at `total` and kept from then on
  int64_t total = 5;
};
Schedule LinearLr(const LinearLrOptions& options);

struct PolynomialLrOptions {
  int64_t total = 5;
  double power = 1;
};
// base * (1 - steps / total)^power; 0 from `total` on.
Schedule PolynomialLr(const PolynomialLrOptions& options);

struct CosineLrOptions {
  int64_t total = 0;
  double floor = 0;
};
// Half a cosine from the base to the floor, which stays from `total` on (where
// PyTorch's rises again).
Schedule CosineLr(const CosineLrOptions& options);

struct OneCycleLrOptions {
  int64_t total = 0;
  double rise = 0.3;       // the part of all steps that the rate rises in
  bool cosine = true;      // rather than straight lines
  double div_factor = 25;  // the base over the rate to begin with
  double final_div_factor = 1e4;  // that over the rate to end with
  bool three_phase = false;  // first down to the beginning, then to the end
};
// Up to the base, then down (Smith, Topin, "Super-convergence", 2018). Momentum
// stays as it is; PyTorch's does with cycle_momentum=False.
Schedule OneCycleLr(const OneCycleLrOptions& options);

// schedules[i] until step milestones[i], each counting from where it begins;
// there is one milestone less.
Schedule SequentialLr(std::vector<Schedule> schedules,
                      std::vector<int64_t> milestones);
// Each begins from the rate that the one before gives.
Schedule ChainedLr(std::vector<Schedule> schedules);
// 1 / steps, 2 / steps, ... of what `then` begins with, then that.
Schedule WarmUp(int64_t steps, Schedule then);

// By name, of a training of `total` steps: "constant", "linear" and "cosine"
// down to 0, "one-cycle", "warm-cosine" and "warm-linear", which rise for a
// tenth of the steps. InvalidArgument lists them.
absl::StatusOr<Schedule> ScheduleNamed(const std::string& name, int64_t total);

}  // namespace baton::optim
