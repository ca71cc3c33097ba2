// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/status.h"
#include "examples/support/measurement.h"
#include "examples/support/participants.h"
#include "rpc/rref.h"

namespace baton::examples {

struct PushFigures {
  double pushes_per_s = 0;  // of all trainers together
  int64_t bytes = 0;        // of a push, and of the values that it pulls
  // Of all trainers together, where they are measured: pushes that pull
  // nothing, and pulls.
  std::optional<double> pushes_alone_per_s = {};
  std::optional<double> pulls_alone_per_s = {};
  double memcpy_bytes_per_s = 0;  // of one thread that copies as many bytes
};

// Calls `push` five times, then `pushes` times, and returns how many of the
// latter ran per second; or the first error.
absl::StatusOr<double> PushesPerSecond(int64_t pushes,
                                       absl::FunctionRef<absl::Status()> push);

// Returns the median rate of some copies into allocated memory.
double MemcpyBytesPerSecond(size_t bytes);

// Describes `trainers` that made `pushes` pushes each; gives the GB/s in both
// directions, and those of pushes and pulls alone, beside those of memcpy.
Measurement PushMeasurement(const std::string& variant, int64_t servers,
                            int64_t trainers, int64_t pushes,
                            const PushFigures& figures);

// Returns a line with the GB/s of PushMeasurement, for people.
std::string FormatPushing(const Measurement& measurement);

// Returns the results of those that are not lost; Unavailable if all are lost.
template <typename T>
absl::StatusOr<std::vector<T>> ThoseThere(
    const std::vector<std::optional<T>>& all) {
  std::vector<T> there;
  for (const std::optional<T>& of_one : all)
    if (of_one.has_value()) there.push_back(*of_one);
  if (!there.empty()) return there;
  return absl::UnavailableError("all trainers were lost");
}

// Runs a method of all pushers, which returns how many pushes it makes per
// second, at the same time, and returns the sum.
template <auto kMethod, typename Pusher>
absl::StatusOr<double> RateOf(const std::vector<RRef<Pusher>>& pushers,
                              int64_t pushes) {
  std::vector<Future<std::optional<double>>> rates;
  for (const RRef<Pusher>& pusher : pushers) {
    rates.push_back(UnlessLost<double>(pusher.template Async<kMethod>(
        rpc::CallOptions{.timeout = kNoLimit}, pushes)));
  }
  ASSIGN_OR_RETURN(const auto given, WaitAll(rates).Await(kNoLimit));
  ASSIGN_OR_RETURN(const std::vector<double> all, ThoseThere(given));
  return std::accumulate(all.begin(), all.end(), 0.0);
}

// Runs all pushers at the same time and returns their pushes per second, of
// `bytes` bytes each.
template <typename Pusher>
absl::StatusOr<PushFigures> MeasurePushers(
    const std::vector<RRef<Pusher>>& pushers, int64_t pushes, int64_t bytes) {
  ASSIGN_OR_RETURN(const double rate, RateOf<&Pusher::Run>(pushers, pushes));
  return PushFigures{
      .pushes_per_s = rate,
      .bytes = bytes,
      .memcpy_bytes_per_s = MemcpyBytesPerSecond(static_cast<size_t>(bytes))};
}

}  // namespace baton::examples
