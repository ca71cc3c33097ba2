// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/executor.h"
#include "core/mutex.h"
#include "rpc/transport.h"

namespace baton::rpc {

enum class FaultKind {
  kDrop,       // the message vanishes; its sender sees OK
  kDelay,      // sent `delay` later; later messages overtake it
  kDuplicate,  // sent twice
  kReorder,    // sent after the next message to that peer, or after `delay`
  kFail,       // vanishes; its sender sees Unavailable when `report` says so
  kSever,      // lost by a Disconnect; its sender sees Unavailable
};

// A fault and the messages that it applies to.
struct FaultRule {
  FaultKind kind = FaultKind::kDrop;
  // Null matches every message.
  std::function<bool(const WorkerInfo& from, const std::string& to,
                     const Message& message)>
      matches;
  double probability = 1;
  int skip = 0;  // matching messages that pass before the rule begins
  int at_most = std::numeric_limits<int>::max();  // faults, then it is spent
  std::chrono::milliseconds delay{20};
  // For kFail: gets the function that informs the sender; must call it once, on
  // any thread.
  std::function<void(Task tell)> report = {};
};

// The faults of one test, shared by the transports of all its workers. The seed
// decides every draw, and the first rule that fires is applied. Thread-safe.
class FaultPlan {
 public:
  explicit FaultPlan(uint64_t seed = 1) : random_(seed) {}

  void Add(FaultRule rule);
  void Clear();
  int injected() const;  // faults so far

 private:
  friend class FaultTransport;
  struct Armed {
    FaultRule rule;
    int matched = 0;
    int fired = 0;
  };
  // Returns the rule to apply, or null.
  std::unique_ptr<FaultRule> Draw(const WorkerInfo& from, const std::string& to,
                                  const Message& message);

  mutable Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  std::vector<Armed> rules_ ABSL_GUARDED_BY(mutex_);
  int injected_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns a transport that applies the faults of `plan` to what is sent through
// `inner`. Each worker whose sends shall fail needs one.
std::unique_ptr<Transport> WithFaults(std::unique_ptr<Transport> inner,
                                      std::shared_ptr<FaultPlan> plan);

}  // namespace baton::rpc
