// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/launch/process.h"
#include "tools/launch/restart_limit.h"
#include "tools/launch/run_inbox.h"

namespace baton::tools {

struct RunPlan {
  std::vector<ProcessSpec> workers;
  // Workers as well, any of which may be lost.
  std::vector<ProcessSpec> spares;
  // Unset: it runs on another machine, and `inbox` says when the run ends.
  std::optional<ProcessSpec> trainer;
  // A worker that fails is started again as it was. One more failure than the
  // policy allows is that of a worker which is lost.
  RestartPolicy restarts;
  // The same for the trainer when it fails, so many times within the policy's
  // window; workers go on meanwhile.
  int trainer_restarts = 0;
  // A worker that is lost does not end the run while so many are left, with
  // those that are about to be started again: the trainer does without it.
  // Unset: all.
  std::optional<int> min_workers;
  // Between asking a process to end (SIGTERM) and killing it.
  std::chrono::milliseconds grace{10'000};
  // Takes each line of what workers print, and of what happens to them.
  // Default: standard error.
  std::function<void(const std::string&)> print;
  // Hears of each process that has ended, before it is started again: its name,
  // and how ("was killed by ..."). Must not wait.
  std::function<void(const std::string& name, const std::string& how)> on_end;
  // Workers of the run on other machines, which count as those here, and what
  // becomes of them and of the run there; null: nothing does.
  int workers_elsewhere = 0;
  std::shared_ptr<RunInbox> inbox = nullptr;
  // If set, hears of each worker that is lost, with the line about it, and
  // decides in place of `min_workers`. Must not wait.
  std::function<void(const std::string& name, const std::string& event)>
      on_lost;
};

// Starts the workers and the trainer, and stays until all have ended:
//  - the trainer ends, and is not started again, or the inbox says that the run
//    ends: the workers are asked to end;
//  - a worker ends by itself: that is printed, in one line with what is done
//    about it;
//  - it has failed: it is started again, or is lost; where too few are left the
//    others and the trainer are asked to end;
//  - SIGINT, SIGTERM, SIGHUP: passed on to the trainer, or, where there is
//  none,
//    the workers are asked to end; the second one kills.
// Who does not end within the grace is killed. Gives the exit code: the
// trainer's or the inbox's, 128 + signal where a signal ended the run, 1 where
// a worker's failure did. A worker is not started again once the run is ending.
// Fails when something cannot be started. Blocks those signals in the calling
// thread, which must be the process's main one and must not end before: the
// processes die with it.
absl::StatusOr<int> RunAll(const RunPlan& plan);

}  // namespace baton::tools
