// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/signalfd.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/launch/output_lines.h"
#include "tools/launch/process.h"
#include "tools/launch/restart_limit.h"
#include "tools/launch/run_all.h"
#include "tools/launch/signal_echo.h"

namespace baton::tools {

// A process of the run.
struct Child {
  using Clock = std::chrono::steady_clock;

  const ProcessSpec* spec;
  Process process;
  RestartLimit restarts;
  bool alive = true;
  bool lost = false;  // a worker that will not be started again
  Clock::time_point start_at = Clock::time_point::max();  // again
  bool asked_to_end = false;
  Clock::time_point kill_at = Clock::time_point::max();
  OutputLines lines;
};

// The implementation of RunAll (tools/launch/run_all.h): the processes of one
// run. Confined to one thread.
class Run {
 public:
  explicit Run(const RunPlan& plan) : plan_(plan) {
    for (const auto& spec : plan.workers) specs_.push_back(&spec);
    for (const auto& spec : plan.spares) specs_.push_back(&spec);
    if (plan.trainer) specs_.push_back(&*plan.trainer);
  }
  ~Run() { Close(); }

  absl::StatusOr<int> Go();

 private:
  using Clock = Child::Clock;

  // Starts all processes, unless a signal ends the run meanwhile.
  absl::Status StartAll();
  bool AllStarted() const { return children_.size() == specs_.size(); }
  bool AnyAlive() const;
  bool Ending() const { return signal_ != 0 || worker_failed_ || ended_; }
  // Returns null if the trainer runs on another machine.
  Child* trainer() { return plan_.trainer ? &children_.back() : nullptr; }
  bool IsSpare(const Child& worker) const;
  RestartPolicy PolicyOf(const ProcessSpec& spec) const;

  void WaitForEvent();
  void ReadSignals();
  void OnSignal(const signalfd_siginfo& info);
  void ReapChildren();
  void OnTrainerEnd(Child& trainer, int wait_status);
  void End() {
    ended_ = true;
    AskWorkersToEnd();
  }
  void OnWorkerEnd(Child& worker, int wait_status);
  // Starts the worker again, now or later, if its limit allows that. Returns
  // the text that says so, for the line about its end.
  std::string PlanRestart(Child& worker);
  absl::Status StartAgain(Child& worker);
  void StartLate();
  void ReadInbox();
  // Prints what happened to the worker and, if it is lost, how many are left.
  void Tell(Child& worker, const std::string& event);
  void TellLoss(const std::string& event, bool spare);
  void ReadOutput(Child& child);
  auto PrinterOf(const Child& child) const {
    return [this, &child](const std::string& line) {
      Print(absl::StrCat("[", child.process.name, "] ", line));
    };
  }

  void AskToEnd(Child& child, int signal);
  void AskWorkersToEnd();
  void KillLate();
  void KillAll();
  void Close();
  void Print(const std::string& line) const;

  const RunPlan& plan_;
  std::vector<const ProcessSpec*> specs_;  // by index, as children_
  int signals_ = -1;
  std::vector<Child> children_;  // workers, spares, the trainer
  std::set<std::string> lost_elsewhere_;
  int signal_ = 0;  // the signal that ended the run
  SignalEcho echo_;
  bool worker_failed_ = false;
  bool ended_ = false;  // the trainer has ended, and so has the run
  int code_ = 0;
};

}  // namespace baton::tools
