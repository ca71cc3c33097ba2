// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/program_path.h"
#include "tools/launch/process.h"

namespace baton::tools {

struct Outcome {
  int code = -1;
  std::string output;
};

// Runs a program to its end. `on_output` sees all output so far and the
// process, each time something comes.
inline Outcome RunProgram(
    std::vector<std::string> args,
    const std::function<void(const std::string&, const Process&)>& on_output =
        nullptr) {
  ProcessSpec spec;
  spec.name = args[0];
  spec.args = std::move(args);
  spec.args[0] = testing::ProgramPath(spec.args[0]);
  spec.capture_output = true;
  const auto process = StartProcess(spec);
  if (!process.ok()) return {-1, process.status().ToString()};
  ::fcntl(process->output, F_SETFL, 0);
  Outcome outcome;
  char buffer[512];
  ssize_t n;
  while ((n = ::read(process->output, buffer, sizeof(buffer))) > 0) {
    outcome.output.append(buffer, static_cast<size_t>(n));
    if (on_output) on_output(outcome.output, *process);
  }
  ::close(process->output);
  int status = 0;
  ::waitpid(process->pid, &status, 0);
  outcome.code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// The child that baton-run has given this name; 0 where there is none.
inline pid_t WorkerOf(pid_t launcher, const std::string& name) {
  std::ifstream children(
      absl::StrCat("/proc/", launcher, "/task/", launcher, "/children"));
  for (pid_t child = 0; children >> child;) {
    std::ifstream file(absl::StrCat("/proc/", child, "/environ"));
    const std::string environment((std::istreambuf_iterator<char>(file)), {});
    const std::string entry =
        absl::StrCat("BATON_NAME=", name, std::string(1, '\0'));
    if (environment.find(entry) != std::string::npos) return child;
  }
  return 0;
}

// A worker of its own cluster, while `look` looks at it.
inline Outcome WithWorker(const std::string& name,
                          std::vector<std::string> flags,
                          const std::function<void(const std::string&)>& look) {
  const std::string place =
      absl::StrCat("unix:/tmp/baton_", name, "_test_", ::getpid());
  std::vector<std::string> args = {"baton-worker", "--name=a",
                                   "--peers=a=" + place, "--log=info"};
  args.insert(args.end(), flags.begin(), flags.end());
  bool looked = false;
  return RunProgram(
      args, [&](const std::string& output, const Process& process) {
        if (looked || output.find("serving at") == std::string::npos) return;
        looked = true;
        look(output);
        SendSignal(process, SIGTERM);
      });
}

// A program that runs beside the test, and no longer than this object. Confined
// to one thread.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> args) {
    ProcessSpec spec;
    spec.name = args[0];
    spec.args = std::move(args);
    spec.args[0] = testing::ProgramPath(spec.args[0]);
    process_ = *StartProcess(spec);
  }
  ~Daemon() {
    if (process_.pid > 0) End(SIGKILL);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Returns once it has stopped.
  void Stop() {
    SendSignal(process_, SIGSTOP);
    ::waitpid(process_.pid, nullptr, WUNTRACED);
  }
  void Continue() { SendSignal(process_, SIGCONT); }
  // The exit status, as wait(2) gives it.
  int End(int signal) {
    SendSignal(process_, signal);
    int status = 0;
    ::waitpid(std::exchange(process_.pid, 0), &status, 0);
    return status;
  }

 private:
  Process process_;
};

}  // namespace baton::tools
