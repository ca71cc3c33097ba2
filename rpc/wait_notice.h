// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "core/mutex.h"
#include "core/timer.h"

namespace baton::rpc {

// Says what somebody waits for, and for how long still, where that takes longer
// than a moment: "worker a waits for ...; it gives up in 58 s", as a warning
// 1.5 s after the beginning and then every 10 s, until this object ends.
// Thread-safe.
class WaitNotice {
 public:
  using Clock = std::chrono::steady_clock;
  struct Times {
    std::chrono::milliseconds first{1'500};
    std::chrono::milliseconds again{10'000};
    // Instead of a line of the log.
    std::function<void(const std::string&)> say = nullptr;
  };

  // `subject`: "worker a"; `what`: "waits for ...".
  WaitNotice(std::string subject, std::string what, Clock::time_point deadline,
             Times times);
  WaitNotice(std::string subject, std::string what, Clock::time_point deadline)
      : WaitNotice(std::move(subject), std::move(what), deadline, Times()) {}
  ~WaitNotice();  // nothing is said afterwards

  // What is waited for from here on.
  void Now(std::string what);

 private:
  void Say();

  const std::string subject_;
  const Clock::time_point deadline_;
  const Times times_;
  Mutex mutex_;
  std::string what_ ABSL_GUARDED_BY(mutex_);
  Timer timer_;  // last: its task uses the rest
};

}  // namespace baton::rpc
