// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/flight_recorder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace baton::rpc {
namespace {

using State = FlightRecord::State;

const char* NameOf(State state) {
  switch (state) {
    case State::kQueued:
      return "queued";
    case State::kRunning:
      return "running";
    case State::kDone:
      return "done";
    case State::kFailed:
      return "failed";
  }
  return "?";
}

// Returns an empty string if the member takes part in the collective.
std::string DifferenceOf(const Collective& what, uint64_t sequence,
                         const MemberFlight& member) {
  if (!member.records.has_value())
    return absl::StrCat(member.member, " does not answer");
  std::vector<FlightRecord> records;
  for (const FlightRecord& record : *member.records)
    if (!record.what.is_passing()) records.push_back(record);
  const auto found = std::find_if(
      records.begin(), records.end(),
      [&](const auto& record) { return record.sequence == sequence; });
  if (found == records.end()) {
    if (records.empty())
      return absl::StrCat(member.member, " has begun nothing yet");
    if (records.back().sequence > sequence) return "";  // done, no longer kept
    return absl::StrCat(member.member, " has not begun it, its last is ",
                        records.back().ToString());
  }
  if (found->what != what)
    return absl::StrCat(member.member, " does ", found->ToString());
  return "";
}

}  // namespace

std::string FlightRecord::ToString() const {
  return absl::StrCat("#", sequence, " ", what.ToString(), ", ", NameOf(state));
}

uint64_t FlightRecorder::Begin(const Collective& what) {
  MutexLock lock(mutex_);
  records_.push_back({++last_, what, State::kQueued});
  if (records_.size() <= kKept) return last_;
  const auto ended = std::find_if(
      records_.begin(), records_.end(), [](const FlightRecord& each) {
        return each.state == State::kDone || each.state == State::kFailed;
      });
  if (ended != records_.end()) records_.erase(ended);
  return last_;
}

void FlightRecorder::Set(uint64_t sequence, State state) {
  MutexLock lock(mutex_);
  for (auto it = records_.rbegin(); it != records_.rend(); ++it) {
    if (it->sequence != sequence) continue;
    it->state = state;
    return;
  }
}

std::vector<FlightRecord> FlightRecorder::Records() const {
  MutexLock lock(mutex_);
  return {records_.begin(), records_.end()};
}

std::string CompareFlights(const Collective& what, uint64_t sequence,
                           const std::vector<MemberFlight>& members) {
  std::vector<std::string> differences;
  for (const MemberFlight& member : members) {
    std::string difference = DifferenceOf(what, sequence, member);
    if (!difference.empty()) differences.push_back(std::move(difference));
  }
  return absl::StrJoin(differences, "; ");
}

}  // namespace baton::rpc
