// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/run_signals.h"

#include <errno.h>
#include <pthread.h>

#include <initializer_list>

namespace baton::tools {
namespace {

// Libraries start threads before main begins, and these may take a signal;
// their handler passes it on to this thread, which waits for it.
pthread_t waiter;

void PassOn(int signal) {
  const int error = errno;
  ::pthread_kill(waiter, signal);
  errno = error;
}

}  // namespace

sigset_t RunSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  // Under nohup, SIGHUP stays ignored; a blocked one would be read.
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

void BlockSignals() {
  const sigset_t set = RunSignals();
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
