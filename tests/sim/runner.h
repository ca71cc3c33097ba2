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

// The result of one run.
struct Outcome {
  std::string wrong;  // empty: no promise was broken
  double simulated_s = 0;
  uint64_t steps = 0;
  uint64_t calls = 0;
  uint64_t digest = 0;  // a hash of all events
};

// Runs the scenarios that `next` fills in, at most `jobs` at a time, each in
// its own process. Calls `done` with each result, and stops when it returns
// false. Thread-compatible.
void RunAll(const std::function<bool(Scenario* next)>& next, int jobs,
            const std::function<bool(const Scenario&, const Outcome&)>& done);

Outcome RunOne(const Scenario& scenario);

// Removes faults from a failing scenario as long as it still fails: halves of
// them, then quarters, ..., then single faults.
Scenario Shrink(const Scenario& failing);

}  // namespace baton::sim
