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

// How a program's parameters are stepped, as told on the command line.
struct Stepping {
  optim::AnyOptions optimizer;
  std::string schedule = "constant";  // of the rate, by its name

  // For a training of so many steps.
  optim::Schedule RatesOver(int64_t steps) const;
  // The rate that it comes to, by the number of steps done before.
  std::function<double(int64_t)> RateOver(int64_t steps) const;
};

// From --optimizer, --lr, --momentum, --weight_decay and --lr_schedule.
// `usual`: what is not given; of another optimizer than its own, that one's
// defaults. InvalidArgument lists what there is.
absl::StatusOr<Stepping> SteppingFromFlags(const Stepping& usual);

// The same for a program whose rate stays as it is: --lr_schedule is wrong.
absl::StatusOr<optim::AnyOptions> OptimizerFromFlags(
    const optim::AnyOptions& usual);

}  // namespace baton::examples
