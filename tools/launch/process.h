// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::tools {

// A program to start.
struct ProcessSpec {
  std::string name;               // in messages
  std::vector<std::string> args;  // args[0] is the program, found on PATH
  std::map<std::string, std::string> environment;  // beside our own
  std::vector<int> cores;  // the only ones it may use; empty: as we may
  // Its standard output and error go into Process::output; it reads nothing.
  bool capture_output = false;
  // A Ctrl-C on the terminal does not reach it.
  bool own_group = false;
};

// A child that the kernel kills when the thread that started it ends, however
// that ends: it never becomes an orphan. Plain data.
struct Process {
  std::string name;
  pid_t pid = 0;
  int output = -1;  // non-blocking read end, to be closed by the holder
  bool own_group = false;
};

// Fails with NotFound or PermissionDenied when the program cannot be run.
absl::StatusOr<Process> StartProcess(const ProcessSpec& spec);

// To the process or, where it has one, to its whole group.
void SendSignal(const Process& process, int signal);

// Of the status that wait(2) gives: "ended with code 1", "was killed by signal
// 9 (Killed)"; and as a shell counts, 128 + signal where one killed it.
std::string HowItEnded(int wait_status);
int ExitCodeOf(int wait_status);

// The cores that this process may use, in order.
std::vector<int> AllowedCores();

// `count` groups of `size` cores each. ResourceExhausted when this process may
// not use so many.
absl::StatusOr<std::vector<std::vector<int>>> DivideCores(int count, int size);

}  // namespace baton::tools
