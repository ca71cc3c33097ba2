// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "tools/command_line.h"
#include "tools/launch/process.h"

namespace baton::tools {
namespace {

// Signal masks cannot be used: libraries start threads before main begins, and
// a signal goes to any thread that does not block it.
std::atomic<int> handler_pipe{-1};

void OnStopSignal(int signal) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] ssize_t n = ::write(handler_pipe, &byte, 1);
  errno = error;
}

void Handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

}  // namespace

void EndWithRunningHandlers(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

StopSignal::StopSignal() {
  int ends[2] = {-1, -1};
  BATON_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  pipe_ = ends[0];
  handler_pipe = ends[1];
  watcher_ = std::thread([this] { Watch(); });
  Handle(&OnStopSignal);
}

StopSignal::~StopSignal() {
  Handle(SIG_DFL);
  ::close(handler_pipe.exchange(-1));
  watcher_.join();
  ::close(pipe_);
}

// Runs until the other end of the pipe is closed.
void StopSignal::Watch() {
  unsigned char byte = 0;
  for (;;) {
    const ssize_t n = ::read(pipe_, &byte, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    const int signal = byte;
    MutexLock lock(mutex_);
    if (echo_.IsEcho(signal)) continue;
    const bool again = signal_ != 0;
    if (!keeping_ || again) {
      // A first signal is not reported, because it interrupts nothing.
      // baton-run sends it to workers that are still joining when their
      // trainer's command line was wrong; the trainer's message is then the
      // only one.
      if (again)
        Complain(absl::StrCat(::strsignal(signal), ": ending at once"), 0);
      ::_exit(128 + signal);
    }
    signal_ = signal;
    changed_.NotifyAll();
  }
}

void StopSignal::Keep() {
  MutexLock lock(mutex_);
  keeping_ = true;
}

int StopSignal::Wait() {
  MutexLock lock(mutex_);
  keeping_ = true;
  while (signal_ == 0) changed_.Wait(mutex_);
  return signal_;
}

void StopSignal::End() {
  MutexLock lock(mutex_);
  if (signal_ == 0) signal_ = SIGTERM;
  changed_.NotifyAll();
}

absl::StatusOr<std::vector<int>> ParseCores(const std::string& text) {
  std::vector<int> cores;
  const std::vector<std::string> ranges =
      absl::StrSplit(text, ',', absl::SkipEmpty());
  for (const std::string& range : ranges) {
    const std::vector<std::string> ends = absl::StrSplit(range, '-');
    int first = 0;
    int last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first ||
        last >= CPU_SETSIZE) {
      return absl::InvalidArgumentError(
          absl::StrCat("cores are given as in 0-2,5, not '", text, "'"));
    }
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

absl::Status SetCoresAndThreads(const std::vector<int>& cores, int threads,
                                char** argv) {
  const char* set = std::getenv("OMP_NUM_THREADS");
  if (threads == 0) threads = static_cast<int>(cores.size());
  const bool pinned = cores.empty() || cores == AllowedCores();
  const bool counted =
      threads == 0 || (set != nullptr && set == absl::StrCat(threads));
  if (pinned && counted) return absl::OkStatus();
  if (!pinned) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int core : cores) CPU_SET(core, &mask);
    if (::sched_setaffinity(0, sizeof(mask), &mask) != 0 ||
        cores != AllowedCores()) {
      return absl::InvalidArgumentError(
          "--cores names cores that this process may not use");
    }
  }
  if (!counted) ::setenv("OMP_NUM_THREADS", absl::StrCat(threads).c_str(), 1);
  ::execv("/proc/self/exe", argv);
  return absl::ErrnoToStatus(errno, "cannot run this program anew");
}

}  // namespace baton::tools
