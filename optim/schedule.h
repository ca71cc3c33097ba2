// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::optim {

// Computes the learning rate of a step from the initial rate of the parameters'
// group and the number of steps taken before. An optimizer follows a schedule:
//
//   sgd.set_schedule(optim::WarmUp(100, optim::CosineLr({.total = 900})));
//
// The functions that make schedules throw Error for options out of range. The
// shapes are those of torch.optim.lr_scheduler.
using Schedule = std::function<double(double base, int64_t steps)>;

struct StepLrOptions {
  int64_t every = 30;
  double factor = 0.1;
};
// The rate is base * factor^(steps / every), with the quotient rounded down.
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
// The rate is base * (1 - steps / total)^power, and 0 from `total` on.
Schedule PolynomialLr(const PolynomialLrOptions& options);

struct CosineLrOptions {
  int64_t total = 0;
  double floor = 0;
};
// The rate follows half a cosine from the base to the floor, and stays at the
// floor from `total` on (PyTorch's rises again).
Schedule CosineLr(const CosineLrOptions& options);

struct OneCycleLrOptions {
  int64_t total = 0;
  double rise = 0.3;              // the share of steps in which the rate rises
  bool cosine = true;             // false: straight lines
  double div_factor = 25;         // the base divided by the initial rate
  double final_div_factor = 1e4;  // the initial rate divided by the final rate
  bool three_phase = false;  // falls first to the initial rate, then to the
                             // final one
};
// The rate rises to the base, then falls (Smith, Topin, "Super-convergence",
// 2018). Momentum is not changed, as in PyTorch with cycle_momentum=False.
Schedule OneCycleLr(const OneCycleLrOptions& options);

// Uses schedules[i] until step milestones[i]; each counts steps from its own
// beginning. There is one milestone fewer than schedules.
Schedule SequentialLr(std::vector<Schedule> schedules,
                      std::vector<int64_t> milestones);
// Each schedule takes the previous one's rate as its base.
Schedule ChainedLr(std::vector<Schedule> schedules);
// Multiplies the first rate of `then` by 1 / steps, 2 / steps, ..., 1, and then
// follows `then`.
Schedule WarmUp(int64_t steps, Schedule then);

// Returns a schedule by name for a training of `total` steps: "constant";
// "linear" and "cosine", which fall to 0; "one-cycle"; "warm-cosine" and
// "warm-linear", which rise for a tenth of the steps. InvalidArgument lists the
// names.
absl::StatusOr<Schedule> ScheduleNamed(const std::string& name, int64_t total);

}  // namespace baton::optim
