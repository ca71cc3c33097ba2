// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "examples/rl/reinforce.h"
#include "examples/support/measurement.h"

namespace baton::examples {

// Returns requests per second and these details, each at kPercentiles:
//   agent_latency_us         from a batch's first request to its actions
//   agent_requests_per_s     in each tenth of a second
//   observer_latency_us      of each request, as its observer sees it
//   observer_requests_per_s  the rate of one observer with that latency
Measurement ServiceMeasurement(const std::string& variant,
                               const ServiceFigures& figures);

// The names of those details.
inline const std::vector<std::string> kServiceFigures = {
    "agent_latency_us", "agent_requests_per_s", "observer_latency_us",
    "observer_requests_per_s"};

}  // namespace baton::examples
