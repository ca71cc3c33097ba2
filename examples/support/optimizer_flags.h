// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "optim/any.h"
#include "optim/schedule.h"

namespace baton::examples {

// How a program steps its parameters, from the command line.
struct Stepping {
  optim::AnyOptions optimizer;
  std::string schedule = "constant";  // of the learning rate, by name

  // Returns the schedule for a training of `steps` steps.
  optim::Schedule RatesOver(int64_t steps) const;
  // Returns the learning rate by the number of steps done before.
  std::function<double(int64_t)> RateOver(int64_t steps) const;
};

// Reads --optimizer, --lr, --momentum, --weight_decay and --lr_schedule.
// `usual` has the values of flags that are not given; for another optimizer
// than its own, that optimizer's defaults apply. InvalidArgument lists the
// possible values.
absl::StatusOr<Stepping> SteppingFromFlags(const Stepping& usual);

// The same for a program with a constant rate, which refuses --lr_schedule.
absl::StatusOr<optim::AnyOptions> OptimizerFromFlags(
    const optim::AnyOptions& usual);

}  // namespace baton::examples
