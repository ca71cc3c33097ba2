// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "examples/rl/reinforce.h"
#include "examples/support/measurement.h"

namespace baton::examples {

// The values below which these shares (percent) of all values lie.
inline const std::vector<double> kPercentiles = {50, 75, 90, 95};
// One for each of kPercentiles; zeros for no values.
std::vector<double> PercentilesOf(std::vector<double> values);

// Requests a second, and as details, each at kPercentiles:
//   agent_latency_us     from the first request of a batch to its actions
//   agent_requests_per_s of each tenth of a second
//   observer_latency_us  of each request, as its observer sees it
//   observer_requests_per_s  that this would make of one observer
Measurement ServiceMeasurement(const std::string& variant,
                               const ServiceFigures& figures);

// The details as a table.
std::string FormatService(const std::vector<Measurement>& measurements);

}  // namespace baton::examples
