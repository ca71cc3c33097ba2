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
  // Further workers, all of which may be lost.
  std::vector<ProcessSpec> spares;
  // Unset: the trainer runs on another machine, and `inbox` says when the run
  // ends.
  std::optional<ProcessSpec> trainer;
  // A worker that fails is started again. If it fails more often than the
  // policy allows, it is lost.
  RestartPolicy restarts;
  // How often a trainer that fails is started again within the policy's window;
  // the workers continue meanwhile.
  int trainer_restarts = 0;
  // The run goes on after a loss while this number of workers is left,
  // including those that are about to be started again. Unset: all workers are
  // needed.
  std::optional<int> min_workers;
  // The time between asking a process to end (SIGTERM) and killing it.
  std::chrono::milliseconds grace{10'000};
  // Called with each line that workers print or that reports what happened to
  // them. Default: prints on standard error.
  std::function<void(const std::string&)> print;
  // Called with each process that has ended, before it is started again: its
  // name and how it ended ("was killed by ..."). Must not wait.
  std::function<void(const std::string& name, const std::string& how)> on_end;
  // The number of the run's workers on other machines, which count as those
  // here, and the inbox for events of them and of the run; null: there are
  // none.
  int workers_elsewhere = 0;
  std::shared_ptr<RunInbox> inbox = nullptr;
  // If set, called with each lost worker and the line about it, and decides
  // instead of `min_workers`. Must not wait.
  std::function<void(const std::string& name, const std::string& event)>
      on_lost;
};

// Starts the workers and the trainer, and returns when all have ended:
//  - when the trainer ends and is not started again, or the inbox says that the
//    run ends, asks the workers to end;
//  - when a worker ends, prints a line that says so and what is done about it;
//  - when a worker fails, starts it again or counts it as lost; if too few are
//    left, asks the others and the trainer to end;
//  - passes SIGINT, SIGTERM and SIGHUP on to the trainer or, if there is none,
//    asks the workers to end; the second signal kills.
// Kills processes that do not end within the grace. Returns the exit code: the
// trainer's or the inbox's, 128 + signal if a signal ended the run, or 1 if a
// lost worker did. A worker is not started again once the run is ending.
// Returns an error if a process cannot be started. Blocks those signals in the
// calling thread, which must be the main thread and must live as long as the
// processes, because they die with it.
absl::StatusOr<int> RunAll(const RunPlan& plan);

}  // namespace baton::tools
