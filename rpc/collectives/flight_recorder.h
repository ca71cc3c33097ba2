// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/mutex.h"
#include "rpc/collectives/collective.h"

namespace baton::rpc {

// One collective, send or receive as a member called it. Plain data.
struct FlightRecord {
  enum class State : uint8_t { kQueued, kRunning, kDone, kFailed };
  // Counts from 1 in each group, separately for sends and receives.
  uint64_t sequence = 0;
  Collective what;
  State state = State::kQueued;

  std::string ToString() const;  // "#7 barrier, done"
  static constexpr auto Fields() {
    return std::tuple{&FlightRecord::sequence, &FlightRecord::what,
                      &FlightRecord::state};
  }
};

// The latest calls of a member of a group: its collectives, or its sends and
// receives. Thread-safe.
class FlightRecorder {
 public:
  static constexpr size_t kKept = 64;  // records of ended calls

  uint64_t Begin(const Collective& what);  // returns the call's sequence number
  void Set(uint64_t sequence, FlightRecord::State state);
  std::vector<FlightRecord> Records() const;  // oldest first

 private:
  mutable Mutex mutex_;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<FlightRecord> records_ ABSL_GUARDED_BY(mutex_);
};

// A member and its records; nullopt if it did not answer.
struct MemberFlight {
  std::string member;  // "rank 1 (bob)"
  std::optional<std::vector<FlightRecord>> records;
};

// Returns which members do not take part in `what` as number `sequence`, and
// what each does instead: "rank 1 (bob) has not begun it, its last is #4
// barrier, done". Returns an empty string if all take part.
std::string CompareFlights(const Collective& what, uint64_t sequence,
                           const std::vector<MemberFlight>& members);

}  // namespace baton::rpc
