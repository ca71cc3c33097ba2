// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

// Learning rates as functions of the number of steps (or epochs) done, for
// Optimizer::set_lr:
//
//   sgd.set_lr(optim::CosineLr({.base = 0.1, .total = epochs}, epoch));
//
// They throw Error on options out of range.
namespace baton::optim {

struct StepLrOptions {
  double base = 0.1;
  int64_t every = 30;
  double factor = 0.1;
};
// base * factor^(steps / every), the quotient rounded down.
double StepLr(const StepLrOptions& options, int64_t steps);

struct CosineLrOptions {
  double base = 0.1;
  double floor = 0;    // reached at `total` and kept from then on
  int64_t warmup = 0;  // steps over which the rate first rises linearly
  int64_t total = 0;
};
// Step 0 of a warm-up has base / warmup; then half a cosine from base to floor
// over the other steps.
double CosineLr(const CosineLrOptions& options, int64_t steps);

}  // namespace baton::optim
