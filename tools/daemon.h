// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "tools/launch/signal_echo.h"

namespace baton::tools {

// Ends the process without destroying static objects, because handlers that
// still run after a shutdown may use them.
[[noreturn]] void EndWithRunningHandlers(int code);

// Lets a program wait for SIGINT or SIGTERM. The first signal ends the wait. A
// first signal before Keep is called, and any second one, end the process at
// once with code 128 + signal; a second one is reported. A repetition of the
// first signal soon after it is its echo and is ignored
// (tools/launch/signal_echo.h). Make one per process, before any other thread.
// Thread-safe.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // From now on the first signal is kept for Wait.
  void Keep();
  // Calls Keep, then waits for the first signal and returns it.
  int Wait();
  // Ends Wait as SIGTERM would, unless a signal has come.
  void End();

 private:
  void Watch();

  int pipe_ = -1;  // the handler writes to its other end
  Mutex mutex_;
  CondVar changed_;
  bool keeping_ ABSL_GUARDED_BY(mutex_) = false;
  int signal_ ABSL_GUARDED_BY(mutex_) = 0;
  SignalEcho echo_ ABSL_GUARDED_BY(mutex_);
  std::thread watcher_;
};

// Parses "0-2,5" into {0, 1, 2, 5}; InvalidArgument for anything else.
absl::StatusOr<std::vector<int>> ParseCores(const std::string& text);

// Restricts this process to `cores` (empty: no change) and sets its number of
// compute threads (0: one per core). If that is a change, executes the program
// again, because OpenMP reads both when the program is loaded. Call it first in
// main.
absl::Status SetCoresAndThreads(const std::vector<int>& cores, int threads,
                                char** argv);

}  // namespace baton::tools
