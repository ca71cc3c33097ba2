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

// Warns during a long wait what is waited for and how long it may still take:
// "worker a waits for ...; it gives up in 58 s". By default the first warning
// comes after 1.5 s and further ones every 10 s, until this object is
// destroyed. Thread-safe.
class WaitNotice {
 public:
  using Clock = std::chrono::steady_clock;
  struct Times {
    std::chrono::milliseconds first{1'500};
    std::chrono::milliseconds again{10'000};
    // If set, called instead of logging a warning.
    std::function<void(const std::string&)> say = nullptr;
  };

  // `subject`: "worker a"; `what`: "waits for ...".
  WaitNotice(std::string subject, std::string what, Clock::time_point deadline,
             Times times);
  WaitNotice(std::string subject, std::string what, Clock::time_point deadline)
      : WaitNotice(std::move(subject), std::move(what), deadline, Times()) {}
  ~WaitNotice();  // no warning comes afterwards

  // Changes what is waited for from now on.
  void Now(std::string what);

 private:
  void Say();

  const std::string subject_;
  const Clock::time_point deadline_;
  const Times times_;
  Mutex mutex_;
  std::string what_ ABSL_GUARDED_BY(mutex_);
  Timer timer_;  // last: its task uses the other members
};

}  // namespace baton::rpc
