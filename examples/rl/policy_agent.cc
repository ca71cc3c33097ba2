// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/policy_agent.h"

#include <utility>

#include "core/executor.h"
#include "core/timer.h"

namespace baton::examples {

std::shared_ptr<PolicyAgent> PolicyAgent::Make(rpc::Agent& agent,
                                               std::shared_ptr<Policy> policy,
                                               const BatchingOptions& options) {
  return std::shared_ptr<PolicyAgent>(
      new PolicyAgent(agent, std::move(policy), options));
}

PolicyAgent::PolicyAgent(rpc::Agent& agent, std::shared_ptr<Policy> policy,
                         const BatchingOptions& options)
    : agent_(agent), policy_(std::move(policy)), options_(options) {}

// [act]
Future<int32_t> PolicyAgent::Act(const Observation& observation) {
  const Request request{.observation = observation};
  Batch full;
  {
    const MutexLock lock(mutex_);
    if (waiting_.requests.empty()) waiting_.begin = Clock::now();
    waiting_.requests.push_back(request);
    full = TakeIfFull();
    if (full.requests.empty() && !looking_)
      LookAt(waiting_.begin + options_.max_wait);
  }
  Answer(full);
  return request.action.future();
}
// [end]

void PolicyAgent::Expect(int64_t observers) {
  const MutexLock lock(mutex_);
  expected_ = observers;
}

void PolicyAgent::ExpectOneLess() {
  Batch full;
  {
    const MutexLock lock(mutex_);
    --expected_;
    full = TakeIfFull();
  }
  Answer(full);
}

std::vector<AnsweredBatch> PolicyAgent::TakeAnswered() {
  const MutexLock lock(mutex_);
  return std::exchange(answered_, {});
}

PolicyAgent::Batch PolicyAgent::TakeIfFull() {
  const auto waiting = static_cast<int64_t>(waiting_.requests.size());
  if (options_.batched && waiting < expected_) return {};
  return std::exchange(waiting_, {});
}

void PolicyAgent::LookAt(Clock::time_point when) {
  looking_ = true;
  agent_.timer().At(when, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->agent_.executor().Post([self] { self->OnTime(); });
  });
}

void PolicyAgent::OnTime() {
  Batch late;
  {
    const MutexLock lock(mutex_);
    looking_ = false;
    if (waiting_.requests.empty()) return;
    const Clock::time_point due = waiting_.begin + options_.max_wait;
    if (due > Clock::now()) {
      LookAt(due);
      return;
    }
    late = std::exchange(waiting_, {});
  }
  Answer(late);
}

void PolicyAgent::Answer(const Batch& batch) {
  if (batch.requests.empty()) return;
  std::vector<Observation> observations;
  for (const Request& request : batch.requests)
    observations.push_back(request.observation);
  const std::vector<int32_t> actions = policy_->Choose(observations);
  {
    // This precedes the answers, so that whoever gets one sees its batch.
    const MutexLock lock(mutex_);
    answered_.push_back({.begin = batch.begin,
                         .end = Clock::now(),
                         .requests = static_cast<int64_t>(actions.size())});
  }
  for (size_t i = 0; i < actions.size(); ++i)
    batch.requests[i].action.Set(actions[i]);
}

}  // namespace baton::examples
