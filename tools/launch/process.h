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
  std::map<std::string, std::string> environment;  // added to our own
  std::vector<int> cores;  // the cores it may use; empty: as this process
  // Sends its standard output and error to Process::output; its input is empty.
  bool capture_output = false;
  // Runs it in its own process group, so that a Ctrl-C on the terminal does not
  // reach it.
  bool own_group = false;
};

// A child process. The kernel kills it when the thread that started it ends for
// any reason, so it never becomes an orphan. Plain data.
struct Process {
  std::string name;
  pid_t pid = 0;
  int output = -1;  // non-blocking read end; the holder closes it
  bool own_group = false;
};

// Returns NotFound or PermissionDenied if the program cannot be run.
absl::StatusOr<Process> StartProcess(const ProcessSpec& spec);

// Sends the signal to the process or, if it has its own group, to that group.
void SendSignal(const Process& process, int signal);

// These describe a status of wait(2): "ended with code 1", "was killed by
// signal 9 (Killed)"; and the exit code as a shell counts it, 128 + signal if
// one killed it.
std::string HowItEnded(int wait_status);
int ExitCodeOf(int wait_status);

// Returns the cores that this process may use, in order.
std::vector<int> AllowedCores();

// Returns `count` groups of `size` cores. ResourceExhausted if this process may
// not use that many.
absl::StatusOr<std::vector<std::vector<int>>> DivideCores(int count, int size);

}  // namespace baton::tools
