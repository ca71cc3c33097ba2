// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/future.h"
#include "core/mutex.h"
#include "examples/rl/policy.h"
#include "rpc/agent.h"
#include "rpc/exports.h"

namespace baton::examples {

struct BatchingOptions {
  // If false, every request gets its own forward.
  bool batched = true;
  // The longest time that a request waits for others.
  std::chrono::milliseconds max_wait{2};
};

// A forward that answered some requests. Plain data.
struct AnsweredBatch {
  std::chrono::steady_clock::time_point begin{};  // when the first request came
  std::chrono::steady_clock::time_point end{};  // when the actions were chosen
  int64_t requests = 0;
};

// Chooses actions for observers. Answers all waiting requests with one forward
// when as many wait as observers play, or when the first has waited for
// max_wait. Waiting requests hold no thread. Must not outlive the agent.
// Thread-safe.
class PolicyAgent : public std::enable_shared_from_this<PolicyAgent> {
 public:
  static std::shared_ptr<PolicyAgent> Make(rpc::Agent& agent,
                                           std::shared_ptr<Policy> policy,
                                           const BatchingOptions& options);

  Future<int32_t> Act(const Observation& observation);

  // Sets how many observers play. Call ExpectOneLess for each that stops.
  void Expect(int64_t observers);
  void ExpectOneLess();
  // Returns the batches answered since the last call.
  std::vector<AnsweredBatch> TakeAnswered();

  using Exports = rpc::Methods<rpc::kConcurrent<&PolicyAgent::Act>>;

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    Observation observation;
    Promise<int32_t> action{};
  };
  struct Batch {
    std::vector<Request> requests;
    Clock::time_point begin{};
  };

  PolicyAgent(rpc::Agent& agent, std::shared_ptr<Policy> policy,
              const BatchingOptions& options);
  // Returns an empty batch while more requests are to come.
  Batch TakeIfFull() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAt(Clock::time_point when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTime();
  void Answer(const Batch& batch);

  rpc::Agent& agent_;
  const std::shared_ptr<Policy> policy_;
  const BatchingOptions options_;
  Mutex mutex_;
  Batch waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t expected_ ABSL_GUARDED_BY(mutex_) = 0;
  // Whether a timer is set. It is not cancelled when a batch is full, because
  // that would wake the timer's thread for every batch.
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<AnsweredBatch> answered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::examples
