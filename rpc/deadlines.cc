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
// many of them cost few walks through all calls.
constexpr milliseconds kLeastBetween{1};

absl::Status TooLate(const OutgoingCall& call) {
  const auto allowed =
      std::chrono::duration_cast<milliseconds>(call.deadline - call.started);
  return absl::DeadlineExceededError(
      absl::StrCat("no answer within ", allowed.count(), " ms"));
}

// Adds the call to `late` if it is late now, or else considers its deadline for
// the next.
template <typename Call>
void Sort(const Call& call, AgentCore::Clock::time_point deadline,
          AgentCore::Clock::time_point now, std::vector<Call>& late,
          AgentCore::Clock::time_point& next) {
  if (call->late) return;
  if (deadline <= now) {
    call->late = true;
    late.push_back(call);
  } else {
    next = std::min(next, deadline);
  }
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
    for (const auto& [call, unclaimed] : outgoing_) {
      if (!call->done) Sort(call, call->deadline, now, made, next);
    }
    for (const auto& [key, call] : incoming_) {
      if (!call->replied)
        Sort(call, call->context->deadline, now, served, next);
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
