// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/launch/process.h"

namespace baton::tools {

struct RunPlan {
  std::vector<ProcessSpec> workers;
  ProcessSpec trainer;
  // A worker that fails is started again as it was, up to so many times within
  // the window. One more failure is that of a worker which is not.
  int restarts = 0;
  std::chrono::milliseconds restart_window{300'000};
  // A worker that fails and is not started again does not end the run: the
  // trainer does without it.
  bool may_lose_workers = false;
  // Between asking a process to end (SIGTERM) and killing it.
  std::chrono::milliseconds grace{10'000};
  // Takes each line of what workers print, and of what happens to them.
  // Default: standard error.
  std::function<void(const std::string&)> print;
};

// Starts the workers and the trainer, and stays until all have ended:
//  - the trainer ends: the workers are asked to end;
//  - a worker fails: that is printed, in one line with what is done about it;
//    it is started again, or else the others and the trainer are asked to end,
//    unless workers may be lost;
//  - SIGINT, SIGTERM, SIGHUP: passed on to the trainer; the second one kills.
// Who does not end within the grace is killed. Gives the exit code: the
// trainer's, 128 + signal where a signal ended the run, 1 where a worker's
// failure did. A worker is not started again once the run is ending. Fails when
// something cannot be started. Blocks those signals in the calling thread,
// which must be the process's main one and must not end before: the processes
// die with it.
absl::StatusOr<int> RunAll(const RunPlan& plan);

// Keeps the signals that RunAll waits for to the calling thread, also those
// that a library's thread takes, which may have begun before main.
void BlockSignals();

}  // namespace baton::tools
