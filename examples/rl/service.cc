// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/service.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace baton::examples {
namespace {

// Returns requests per second in each whole slice of time from the first batch
// to the last. Leaves out slices without requests, such as those in which the
// agent learns.
std::vector<double> RatesOf(const std::vector<AnsweredBatch>& batches) {
  constexpr double kSlice = 0.1;  // seconds
  if (batches.empty()) return {};
  std::map<int64_t, double> slices;
  for (const AnsweredBatch& batch : batches) {
    const std::chrono::duration<double> at = batch.end - batches.front().begin;
    slices[static_cast<int64_t>(at.count() / kSlice)] +=
        static_cast<double>(batch.requests) / kSlice;
  }
  if (slices.size() > 1) slices.erase(std::prev(slices.end()));
  std::vector<double> rates;
  for (const auto& [slice, rate] : slices) rates.push_back(rate);
  return rates;
}

}  // namespace

Measurement ServiceMeasurement(const std::string& variant,
                               const ServiceFigures& figures) {
  std::vector<double> of_agent, of_observers, rates;
  int64_t requests = 0;
  for (const AnsweredBatch& batch : figures.batches) {
    const std::chrono::duration<double, std::micro> latency =
        batch.end - batch.begin;
    of_agent.push_back(latency.count());
    requests += batch.requests;
  }
  for (const float latency : figures.latencies_us) {
    of_observers.push_back(latency);
    rates.push_back(1e6 / std::max(latency, 1e-3F));
  }
  const auto batches =
      static_cast<double>(std::max<size_t>(figures.batches.size(), 1));
  return {.variant = variant,
          .items = requests,
          .seconds = {figures.seconds},
          .details = {{"mean_batch", static_cast<double>(requests) / batches},
                      {"percentiles", kPercentiles},
                      {"agent_latency_us", PercentilesOf(of_agent)},
                      {"agent_requests_per_s",
                       PercentilesOf(RatesOf(figures.batches))},
                      {"observer_latency_us", PercentilesOf(of_observers)},
                      {"observer_requests_per_s", PercentilesOf(rates)}},
          .item = "requests"};
}

}  // namespace baton::examples
