// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/agent_core.h"

// How calls that were made and calls that are served end at their deadlines.
namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;

// Deadlines that are closer together than this may be met together, so that
// many of them cost few wake-ups.
constexpr milliseconds kLeastBetween{1};

absl::Status TooLate(const OutgoingCall& call) {
  const auto allowed =
      std::chrono::duration_cast<milliseconds>(call.deadline - call.started);
  return absl::DeadlineExceededError(
      absl::StrCat("no answer within ", allowed.count(), " ms"));
}

// Returns whether the call is late now, and if so, adds it to `late`, once.
template <typename Call>
bool IsLate(const Due<Call>& due, AgentCore::Clock::time_point now,
            std::vector<Call>& late) {
  const auto& [deadline, call] = due;
  if (deadline > now) return false;
  if (!std::exchange(call->late, true)) late.push_back(call);
  return true;
}

}  // namespace

void AgentCore::AwaitDeadlineLocked(Clock::time_point deadline) {
  if (deadline >= awaited_) return;
  timer_.Cancel(alarm_);
  awaited_ = deadline;
  alarm_ = timer_.At(deadline, [this] { EndLateCalls(); });
}

void AgentCore::EndLateCalls() {
  std::vector<CallPtr> made;
  std::vector<IncomingPtr> served;
  {
    MutexLock lock(mutex_);
    const auto now = Clock::now();
    auto next = Clock::time_point::max();
    for (const auto& [due, unclaimed] : outgoing_) {
      if (IsLate(due, now, made)) continue;
      next = due.first;
      break;
    }
    for (const Due<IncomingPtr>& due : served_) {
      if (IsLate(due, now, served)) continue;
      next = std::min(next, due.first);
      break;
    }
    awaited_ = Clock::time_point::max();
    if (next != Clock::time_point::max()) {
      AwaitDeadlineLocked(
          std::max<Clock::time_point>(next, now + kLeastBetween));
    }
  }
  for (const CallPtr& call : made) FailLater(call, TooLate(*call), false);
  for (const IncomingPtr& call : served) {
    completions_->Post([call] {
      call->context->cancel.Cancel(
          absl::DeadlineExceededError("the call's deadline has passed"));
    });
  }
}

}  // namespace baton::rpc::internal
