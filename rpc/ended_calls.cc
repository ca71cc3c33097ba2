// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/shown_time.h"
#include "rpc/agent_core.h"
#include "rpc/introspection.h"

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
      absl::StrCat("no answer within ", ShownTime(allowed)));
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

// Statistics and traces of calls that have ended.

namespace {

uint64_t MicrosSince(AgentCore::Clock::time_point begin) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          AgentCore::Clock::now() - begin)
          .count());
}

// Fetch and Ready count as one method each for all types.
const std::string& StatsName(const MethodKey& method, const std::string& name) {
  static const std::string fetch = "RRef::Fetch", ready = "RRef::Ready";
  if (method.type != kSystemMethods) return name;
  return method.index == kFetch ? fetch : ready;
}

}  // namespace

void AgentCore::RecordMade(const CallPtr& call, bool ok) {
  const MethodKey& method = call->spec.method;
  stats_.Add(CallStats::Side::kCaller, call->to.name, method,
             StatsName(method, call->spec.name),
             {.ok = ok,
              .micros = MicrosSince(call->started),
              .bytes_sent = call->bytes_sent,
              .bytes_received = call->bytes_received});
  if (!tracer_->on()) return;
  const int64_t begin = Tracer::Nanos(call->started);
  const int64_t sent = call->sent_ns;
  tracer_->Add({.kind = TraceEvent::Kind::kCall,
                .ok = ok,
                .name = call->spec.name,
                .peer = call->to.name,
                .number = call->number,
                .begin_ns = begin,
                .mid_ns = sent == 0 ? begin : sent,
                .end_ns = Tracer::Now(),
                .request_bytes = call->bytes_sent,
                .answer_bytes = call->bytes_received});
}

void AgentCore::RecordServed(const IncomingPtr& call, bool ok,
                             uint64_t bytes_sent) {
  const bool served =
      call->started != Clock::time_point() && !call->name.empty();
  // Calls of observers are not recorded.
  if (!served || call->from.rank == kObserverRank) return;
  const MethodKey method{call->frame.type, call->frame.index};
  stats_.Add(CallStats::Side::kCallee, call->from.name, method,
             StatsName(method, call->name),
             {.ok = ok,
              .micros = MicrosSince(call->started),
              .bytes_sent = bytes_sent,
              .bytes_received = call->bytes_received});
  if (!tracer_->on()) return;
  const int64_t begin = Tracer::Nanos(call->started);
  const int64_t running = call->running_ns;
  tracer_->Add({.kind = TraceEvent::Kind::kServe,
                .ok = ok,
                .name = call->name,
                .peer = call->from.name,
                .number = call->frame.call,
                .begin_ns = begin,
                .mid_ns = running == 0 ? begin : running,
                .end_ns = Tracer::Now(),
                .request_bytes = call->bytes_received,
                .answer_bytes = bytes_sent});
}

}  // namespace baton::rpc::internal
