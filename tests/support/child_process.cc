// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/status.h"

extern char** environ;

namespace baton {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

ChildProcess::ChildProcess(const std::vector<std::string>& command) {
  int to[2], from[2];
  BATON_CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  BATON_CHECK(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(),
                          environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  in_ = to[1];
  out_ = from[0];
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    Kill(SIGKILL);
    Wait();
  }
  CloseInput();
  close(out_);
}

std::string ChildProcess::ReadLine() {
  return ReadLine(steady_clock::time_point::max()).value_or("");
}

std::optional<std::string> ChildProcess::ReadLine(
    steady_clock::time_point deadline) {
  for (;;) {
    if (deadline != steady_clock::time_point::max()) {
      const auto left = std::chrono::ceil<milliseconds>(std::max(
          deadline - steady_clock::now(), steady_clock::duration::zero()));
      pollfd ready{out_, POLLIN, 0};
      if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) {
        return std::nullopt;
      }
    }
    char c;
    if (read(out_, &c, 1) != 1) return std::nullopt;
    if (c == '\n') return std::exchange(line_, "");
    line_.push_back(c);
  }
}

void ChildProcess::CloseInput() {
  if (in_ >= 0) close(std::exchange(in_, -1));
}

void ChildProcess::WriteLine(const std::string& line) {
  const std::string text = line + "\n";
  BATON_CHECK(write(in_, text.data(), text.size()) ==
              static_cast<ssize_t>(text.size()));
}

void ChildProcess::Kill(int signal) {
  if (pid_ > 0) kill(pid_, signal);
}

std::optional<int> ChildProcess::Wait(steady_clock::time_point deadline) {
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(milliseconds(1));
  }
  pid_ = -1;
  return status;
}

int ChildProcess::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

}  // namespace baton
