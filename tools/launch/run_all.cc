// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/run_all.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/shown_time.h"
#include "core/status.h"
#include "tools/launch/run.h"
#include "tools/launch/run_signals.h"

namespace baton::tools {
namespace {

constexpr int kWrongUsage = 2;  // an exit code

}  // namespace

void Run::Print(const std::string& line) const {
  if (plan_.print) {
    plan_.print(line);
    return;
  }
  const std::string text = line + "\n";
  [[maybe_unused]] ssize_t n = ::write(2, text.data(), text.size());
}

absl::Status Run::StartAll() {
  while (!AllStarted()) {
    ReadSignals();
    if (signal_ != 0) return absl::OkStatus();
    const ProcessSpec* const spec = specs_[children_.size()];
    ASSIGN_OR_RETURN(Process process, StartProcess(*spec));
    children_.push_back({.spec = spec,
                         .process = std::move(process),
                         .restarts = RestartLimit(PolicyOf(*spec)),
                         .lines = {}});
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Run::Go() {
  BlockSignals();
  const sigset_t set = RunSignals();
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0)
    return absl::ErrnoToStatus(errno, "cannot wait for signals");
  const absl::Status started = StartAll();
  if (!AllStarted()) {
    KillAll();
    for (Child& child : children_) ::waitpid(child.process.pid, nullptr, 0);
    RETURN_IF_ERROR(started);
    return 128 + signal_;
  }
  ReapChildren();  // the signals read above announced these
  while (AnyAlive()) WaitForEvent();
  if (worker_failed_) return 1;
  if (signal_ != 0 && code_ == 0) return 128 + signal_;
  return code_;
}

bool Run::AnyAlive() const {
  return std::any_of(
      children_.begin(), children_.end(), [](const Child& child) {
        return child.alive || child.start_at != Clock::time_point::max();
      });
}

bool Run::IsSpare(const Child& worker) const {
  return worker.spec >= plan_.spares.data() &&
         worker.spec < plan_.spares.data() + plan_.spares.size();
}

RestartPolicy Run::PolicyOf(const ProcessSpec& spec) const {
  RestartPolicy policy = plan_.restarts;
  if (plan_.trainer && &spec == &*plan_.trainer)
    policy.most = plan_.trainer_restarts;
  return policy;
}

void Run::WaitForEvent() {
  std::vector<pollfd> polls{{signals_, POLLIN, 0}};
  polls.push_back({plan_.inbox ? plan_.inbox->fd() : -1, POLLIN, 0});
  std::vector<Child*> readers;
  Clock::time_point next = Clock::time_point::max();
  for (Child& child : children_) {
    next = std::min(next, child.alive ? child.kill_at : child.start_at);
    if (child.process.output < 0) continue;
    polls.push_back({child.process.output, POLLIN, 0});
    readers.push_back(&child);
  }
  int timeout = -1;
  if (next != Clock::time_point::max()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
  }
  ::poll(polls.data(), polls.size(), timeout);
  for (size_t i = 0; i < readers.size(); ++i) {
    if (polls[i + 2].revents != 0) ReadOutput(*readers[i]);
  }
  ReadSignals();
  ReapChildren();
  ReadInbox();
  KillLate();
  StartLate();
}

void Run::ReadSignals() {
  signalfd_siginfo info;
  while (::read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) OnSignal(info);
  }
}

void Run::OnSignal(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (echo_.IsEcho(signal)) return;
  if (signal_ != 0) return KillAll();
  signal_ = signal;
  Print(absl::StrCat("baton-run: ", strsignal(signal), ": stopping"));
  if (!AllStarted()) return;
  if (trainer() == nullptr || !trainer()->alive) return AskWorkersToEnd();
  // The terminal has sent its own signals to the trainer, too.
  const bool from_terminal = info.ssi_code == SI_KERNEL && signal != SIGTERM;
  AskToEnd(*trainer(), from_terminal ? 0 : signal);
}

void Run::ReapChildren() {
  for (Child& child : children_) {
    int status = 0;
    if (!child.alive || ::waitpid(child.process.pid, &status, WNOHANG) <= 0)
      continue;
    child.alive = false;
    if (child.process.output >= 0) ReadOutput(child);
    child.lines.Flush(PrinterOf(child));
    if (&child == trainer()) {
      OnTrainerEnd(child, status);
    } else {
      OnWorkerEnd(child, status);
    }
  }
}

void Run::OnTrainerEnd(Child& trainer, int wait_status) {
  const std::string how = HowItEnded(wait_status);
  const std::string& name = trainer.process.name;
  code_ = ExitCodeOf(wait_status);
  // Starting again does not correct a wrong command line.
  const bool may_help = code_ != 0 && code_ != kWrongUsage;
  if (may_help && !Ending() && plan_.trainer_restarts > 0) {
    if (plan_.on_end) plan_.on_end(name, how);
    // Comes first, because a restart changes the process id.
    std::string event = absl::StrCat("baton-run: ", name, " (process ",
                                     trainer.process.pid, ") ", how);
    Print(event + PlanRestart(trainer));
    if (!trainer.lost) return;
  } else if (WIFSIGNALED(wait_status) && !trainer.asked_to_end) {
    Print(absl::StrCat("baton-run: ", name, " ", how,
                       Ending() ? "" : "; --trainer_restarts starts it again"));
  }
  End();
}

void Run::OnWorkerEnd(Child& worker, int wait_status) {
  // A worker that was asked to end reports its own errors.
  const bool as_asked =
      worker.asked_to_end &&
      (WIFEXITED(wait_status) || WTERMSIG(wait_status) == SIGTERM);
  if (plan_.on_end) plan_.on_end(worker.process.name, HowItEnded(wait_status));
  const bool failed = ExitCodeOf(wait_status) != 0;
  if (as_asked || (!failed && Ending())) return;
  // The group may contain processes that the worker started.
  if (failed && worker.process.own_group) SendSignal(worker.process, SIGKILL);
  std::string event =
      absl::StrCat("baton-run: ", worker.process.name, " (process ",
                   worker.process.pid, ") ", HowItEnded(wait_status));
  if (failed && !Ending()) event += PlanRestart(worker);
  Tell(worker, event);
}

std::string Run::PlanRestart(Child& worker) {
  const RestartPolicy policy = PolicyOf(*worker.spec);
  worker.lost = true;
  if (policy.most == 0) return "";
  const std::string window = absl::StrCat(" of ", policy.most, " times within ",
                                          ShownTime(policy.window));
  const auto pause = worker.restarts.Take();
  if (!pause) return absl::StrCat("; was started again ", policy.most, window);
  const std::string times = absl::StrCat(worker.restarts.taken(), window);
  worker.lost = false;
  if (pause->count() > 0) {
    worker.start_at = Clock::now() + *pause;
    return absl::StrCat("; is started again in ", ShownTime(*pause), ", ",
                        times);
  }
  const absl::Status started = StartAgain(worker);
  if (!started.ok()) return absl::StrCat("; ", started.message());
  return absl::StrCat("; started again as process ", worker.process.pid, ", ",
                      times);
}

absl::Status Run::StartAgain(Child& worker) {
  worker.start_at = Clock::time_point::max();
  absl::StatusOr<Process> process = StartProcess(*worker.spec);
  worker.lost = !process.ok();
  RETURN_IF_ERROR(process.status());
  if (worker.process.output >= 0) ::close(worker.process.output);
  worker.process = *std::move(process);
  worker.alive = true;
  return absl::OkStatus();
}

void Run::StartLate() {
  for (Child& child : children_) {
    if (child.alive || Clock::now() < child.start_at) continue;
    const absl::Status started = StartAgain(child);
    const std::string now =
        started.ok()
            ? absl::StrCat("started again as process ", child.process.pid)
            : std::string(started.message());
    Tell(child, absl::StrCat("baton-run: ", child.process.name, " ", now));
    if (&child == trainer() && !started.ok()) End();
  }
}

void Run::ReadInbox() {
  if (plan_.inbox == nullptr) return;
  for (RunInbox::Message& message : plan_.inbox->Take()) {
    const size_t before = lost_elsewhere_.size();
    if (!Ending()) lost_elsewhere_.merge(message.lost);
    if (lost_elsewhere_.size() > before) {
      TellLoss(message.event, false);
    } else if (!message.event.empty() && !Ending()) {
      Print(message.event);
    }
    if (!message.ends || Ending()) continue;
    code_ = message.code;
    End();
  }
}

void Run::Tell(Child& worker, const std::string& event) {
  if (!worker.lost || Ending() || &worker == trainer()) {
    Print(event);
  } else if (const bool spare = IsSpare(worker); spare || !plan_.on_lost) {
    TellLoss(event, spare);
  } else {
    Print(event);
    code_ = 1;  // unless the inbox has another
    plan_.on_lost(worker.process.name, event);
  }
}

void Run::TellLoss(const std::string& event, bool spare) {
  const auto here = (spare ? plan_.spares : plan_.workers).size();
  const auto lost = std::count_if(
      children_.begin(), children_.end(), [&](const Child& child) {
        return child.lost && IsSpare(child) == spare;
      });
  const int all =
      static_cast<int>(here) + (spare ? 0 : plan_.workers_elsewhere);
  const int left = all - static_cast<int>(lost) -
                   (spare ? 0 : static_cast<int>(lost_elsewhere_.size()));
  worker_failed_ = !spare && left < plan_.min_workers.value_or(all);
  Print(absl::StrCat(event, "; ", left, " of ", all,
                     spare ? " spares" : " workers", " are left",
                     worker_failed_ ? "; stopping the others" : ""));
  if (!worker_failed_) return;
  if (trainer() != nullptr) AskToEnd(*trainer(), SIGTERM);
  AskWorkersToEnd();
}

void Run::ReadOutput(Child& child) {
  if (child.lines.Read(child.process.output, PrinterOf(child))) return;
  ::close(std::exchange(child.process.output, -1));
}

void Run::AskToEnd(Child& child, int signal) {
  child.start_at = Clock::time_point::max();
  if (!child.alive || child.asked_to_end) return;
  child.asked_to_end = true;
  child.kill_at = Clock::now() + plan_.grace;
  if (signal == 0) return;
  SendSignal(child.process, signal);
  SendSignal(child.process, SIGCONT);  // a stopped process would not end
}

void Run::AskWorkersToEnd() {
  for (Child& child : children_) {
    if (&child != trainer() || !child.alive) AskToEnd(child, SIGTERM);
  }
}

void Run::KillLate() {
  for (Child& child : children_) {
    if (!child.alive || Clock::now() < child.kill_at) continue;
    Print(absl::StrCat("baton-run: ", child.process.name, " (process ",
                       child.process.pid, ") did not end within ",
                       ShownTime(plan_.grace), "; killing it"));
    child.kill_at = Clock::time_point::max();
    SendSignal(child.process, SIGKILL);
  }
}

void Run::KillAll() {
  for (Child& child : children_) {
    child.asked_to_end = true;
    child.start_at = Clock::time_point::max();
    if (child.alive) SendSignal(child.process, SIGKILL);
  }
}

void Run::Close() {
  for (Child& child : children_) {
    if (child.process.output >= 0) ::close(child.process.output);
  }
  if (signals_ >= 0) ::close(signals_);
}

absl::StatusOr<int> RunAll(const RunPlan& plan) { return Run(plan).Go(); }

}  // namespace baton::tools
