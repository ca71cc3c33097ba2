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
#include "core/status.h"
#include "tools/launch/restart_limit.h"
#include "tools/launch/signal_echo.h"

namespace baton::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLongestLine = 1 << 16;

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  // Started by nohup it stays ignored; blocked it would come through.
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

// Libraries have threads before main begins, which take signals as they like:
// what one of them takes goes to the thread that waits for it.
pthread_t waiter;

void PassOn(int signal) {
  const int error = errno;
  ::pthread_kill(waiter, signal);
  errno = error;
}

std::string Describe(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return absl::StrCat("was killed by signal ", WTERMSIG(wait_status), " (",
                        strsignal(WTERMSIG(wait_status)), ")");
  }
  return absl::StrCat("ended with code ", WEXITSTATUS(wait_status));
}

int ExitCode(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

struct Child {
  Process process;
  RestartLimit restarts;
  bool alive = true;
  bool asked_to_end = false;
  Clock::time_point kill_at = Clock::time_point::max();
  std::string line;  // what has come of the next line
};

// The processes of one run and what is to happen to them. Confined to one
// thread.
class Run {
 public:
  explicit Run(const RunPlan& plan) : plan_(plan) {}
  ~Run() { Close(); }

  absl::StatusOr<int> Go();

 private:
  // Until a signal ends it.
  absl::Status StartAll();
  bool AllStarted() const { return children_.size() > plan_.workers.size(); }
  bool AnyAlive() const;
  Child& trainer() { return children_.back(); }

  void WaitForEvent();
  void ReadSignals();
  void OnSignal(const signalfd_siginfo& info);
  void ReapChildren();
  void OnTrainerEnd(int wait_status);
  void OnWorkerEnd(Child& worker, int wait_status);
  // Where that may be. Gives what has become of it, for the line about its end.
  std::string StartAgain(Child& worker);
  void ReadOutput(Child& child);
  void FlushLine(Child& child);

  void AskToEnd(Child& child, int signal);
  void AskWorkersToEnd();
  void KillLate();
  void KillAll();
  void Close();
  void Print(const std::string& line) const;

  const RunPlan& plan_;
  int signals_ = -1;
  std::vector<Child> children_;  // the trainer last
  int signal_ = 0;               // that ended the run
  SignalEcho echo_;
  bool worker_failed_ = false;
  int trainer_code_ = 0;
};

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
    const bool workers_left = children_.size() < plan_.workers.size();
    ASSIGN_OR_RETURN(Process process,
                     StartProcess(workers_left ? plan_.workers[children_.size()]
                                               : plan_.trainer));
    children_.push_back(
        {.process = std::move(process),
         .restarts = RestartLimit(plan_.restarts, plan_.restart_window),
         .line = {}});
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Run::Go() {
  BlockSignals();
  const sigset_t set = Signals();
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
  ReapChildren();  // whose signals have been read above
  while (AnyAlive()) WaitForEvent();
  if (worker_failed_) return 1;
  if (signal_ != 0 && trainer_code_ == 0) return 128 + signal_;
  return trainer_code_;
}

bool Run::AnyAlive() const {
  return std::any_of(children_.begin(), children_.end(),
                     [](const Child& child) { return child.alive; });
}

void Run::WaitForEvent() {
  std::vector<pollfd> polls{{signals_, POLLIN, 0}};
  std::vector<Child*> readers;
  Clock::time_point next = Clock::time_point::max();
  for (Child& child : children_) {
    if (child.alive) next = std::min(next, child.kill_at);
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
    if (polls[i + 1].revents != 0) ReadOutput(*readers[i]);
  }
  ReadSignals();
  ReapChildren();
  KillLate();
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
  if (signal_ != 0) {
    KillAll();
    return;
  }
  signal_ = signal;
  Print(absl::StrCat("baton-run: ", strsignal(signal), ": stopping"));
  if (!AllStarted()) return;
  if (!trainer().alive) {
    AskWorkersToEnd();
    return;
  }
  // The terminal has sent its own signals to the trainer too.
  const bool from_terminal = info.ssi_code == SI_KERNEL && signal != SIGTERM;
  AskToEnd(trainer(), from_terminal ? 0 : signal);
}

void Run::ReapChildren() {
  for (Child& child : children_) {
    int status = 0;
    if (!child.alive || ::waitpid(child.process.pid, &status, WNOHANG) <= 0)
      continue;
    child.alive = false;
    if (child.process.output >= 0) ReadOutput(child);
    FlushLine(child);
    if (&child == &trainer()) {
      OnTrainerEnd(status);
    } else {
      OnWorkerEnd(child, status);
    }
  }
}

void Run::OnTrainerEnd(int wait_status) {
  trainer_code_ = ExitCode(wait_status);
  if (WIFSIGNALED(wait_status) && !trainer().asked_to_end) {
    Print(absl::StrCat("baton-run: ", trainer().process.name, " ",
                       Describe(wait_status)));
  }
  AskWorkersToEnd();
}

void Run::OnWorkerEnd(Child& worker, int wait_status) {
  // What a worker that was asked to end has to say, it says itself.
  const bool as_asked =
      worker.asked_to_end &&
      (WIFEXITED(wait_status) || WTERMSIG(wait_status) == SIGTERM);
  if (ExitCode(wait_status) == 0 || as_asked) return;
  // The group may hold processes that the worker started.
  if (worker.process.own_group) SendSignal(worker.process, SIGKILL);
  const bool ending = !trainer().alive || worker_failed_ || signal_ != 0;
  std::string event =
      absl::StrCat("baton-run: ", worker.process.name, " (process ",
                   worker.process.pid, ") ", Describe(wait_status));
  if (!ending) event += StartAgain(worker);
  const bool fatal = !ending && !worker.alive && !plan_.may_lose_workers;
  Print(absl::StrCat(event, fatal ? "; stopping the others" : ""));
  if (!fatal) return;
  worker_failed_ = true;
  AskToEnd(trainer(), SIGTERM);
  AskWorkersToEnd();
}

std::string Run::StartAgain(Child& worker) {
  if (plan_.restarts == 0) return "";
  const std::string window =
      absl::StrCat(" within ", plan_.restart_window.count(), " ms");
  if (!worker.restarts.Take()) {
    return absl::StrCat("; was started again ", plan_.restarts, " times",
                        window);
  }
  const auto index = static_cast<size_t>(&worker - children_.data());
  absl::StatusOr<Process> process = StartProcess(plan_.workers[index]);
  if (!process.ok()) return absl::StrCat("; ", process.status().message());
  if (worker.process.output >= 0) ::close(worker.process.output);
  worker.process = *std::move(process);
  worker.alive = true;
  return absl::StrCat("; started again as process ", worker.process.pid, ", ",
                      worker.restarts.taken(), " of ", plan_.restarts, " times",
                      window);
}

void Run::ReadOutput(Child& child) {
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(child.process.output, buffer, sizeof(buffer))) > 0) {
    for (const char* at = buffer; at != buffer + n; ++at) {
      if (*at == '\n') {
        Print(absl::StrCat("[", child.process.name, "] ", child.line));
        child.line.clear();
      } else {
        child.line += *at;
        if (child.line.size() == kLongestLine) FlushLine(child);
      }
    }
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  ::close(std::exchange(child.process.output, -1));
}

void Run::FlushLine(Child& child) {
  if (child.line.empty()) return;
  Print(absl::StrCat("[", child.process.name, "] ", child.line));
  child.line.clear();
}

void Run::AskToEnd(Child& child, int signal) {
  if (!child.alive || child.asked_to_end) return;
  child.asked_to_end = true;
  child.kill_at = Clock::now() + plan_.grace;
  if (signal == 0) return;
  SendSignal(child.process, signal);
  SendSignal(child.process, SIGCONT);  // one that is stopped would not hear
}

void Run::AskWorkersToEnd() {
  for (Child& child : children_) {
    if (&child != &trainer()) AskToEnd(child, SIGTERM);
  }
}

void Run::KillLate() {
  for (Child& child : children_) {
    if (!child.alive || Clock::now() < child.kill_at) continue;
    Print(absl::StrCat("baton-run: ", child.process.name, " (process ",
                       child.process.pid, ") did not end within ",
                       plan_.grace.count(), " ms; killing it"));
    child.kill_at = Clock::time_point::max();
    SendSignal(child.process, SIGKILL);
  }
}

void Run::KillAll() {
  for (Child& child : children_) {
    child.asked_to_end = true;
    if (child.alive) SendSignal(child.process, SIGKILL);
  }
}

void Run::Close() {
  for (Child& child : children_) {
    if (child.process.output >= 0) ::close(child.process.output);
  }
  if (signals_ >= 0) ::close(signals_);
}

}  // namespace

absl::StatusOr<int> RunAll(const RunPlan& plan) { return Run(plan).Go(); }

void BlockSignals() {
  const sigset_t set = Signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiter = ::pthread_self();
  struct sigaction action {};
  action.sa_handler = PassOn;
  action.sa_flags = SA_RESTART;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&set, signal) == 1) ::sigaction(signal, &action, nullptr);
  }
  ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace baton::tools
