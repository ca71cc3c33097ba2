// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/scenario.h"

namespace baton::sim {

// How one run ended.
struct Outcome {
  std::string wrong;  // empty: all promises were kept
  double simulated_s = 0;
  uint64_t steps = 0;
  uint64_t calls = 0;
  uint64_t digest = 0;  // of all that happened
};

// Runs scenarios, each in a process of its own, so many at a time; `done` hears
// of each. Ends early when it says false. Thread-compatible.
void RunAll(const std::function<bool(Scenario* next)>& next, int jobs,
            const std::function<bool(const Scenario&, const Outcome&)>& done);

Outcome RunOne(const Scenario& scenario);

// The fewest faults, of those of a scenario that goes wrong, with which it
// still does: without any half, quarter, ..., fault that is not needed.
Scenario Shrink(const Scenario& failing);

}  // namespace baton::sim
