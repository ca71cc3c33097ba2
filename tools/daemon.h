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

// Ends the process without destroying static objects, which handlers that a
// shutdown has left behind may still use.
[[noreturn]] void EndWithRunningHandlers(int code);

// SIGINT and SIGTERM as something to wait for. The first one ends the wait; a
// first one before Keep is called, and any second one, end the process at once
// with 128 + signal, and only the second is reported; the same one at once
// after the first is its echo and does nothing (tools/launch/signal_echo.h).
// One per process, made before any other thread. Thread-safe.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // From here on the first signal is kept for Wait.
  void Keep();
  // Keep, then waits for the first signal and gives it.
  int Wait();
  // As if SIGTERM had come, unless a signal has: Wait ends.
  void End();

 private:
  void Watch();

  int pipe_ = -1;  // from the handler
  Mutex mutex_;
  CondVar changed_;
  bool keeping_ ABSL_GUARDED_BY(mutex_) = false;
  int signal_ ABSL_GUARDED_BY(mutex_) = 0;
  SignalEcho echo_ ABSL_GUARDED_BY(mutex_);
  std::thread watcher_;
};

// "0-2,5" as {0, 1, 2, 5}; InvalidArgument for anything else.
absl::StatusOr<std::vector<int>> ParseCores(const std::string& text);

// Gives this process `cores` (empty: leaves them) and `threads` compute threads
// (0: one a core), by running the program anew where that is a change: OpenMP
// reads both when a program is loaded. Call it first in main.
absl::Status SetCoresAndThreads(const std::vector<int>& cores, int threads,
                                char** argv);

}  // namespace baton::tools
