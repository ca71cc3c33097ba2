// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton {

// A program started by exec, with pipes to its input and from its output;
// killed and waited for when this object goes. Confined to one thread.
class ChildProcess {
 public:
  explicit ChildProcess(const std::vector<std::string>& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  std::string ReadLine();  // without its end; empty at the end of the output
  void WriteLine(const std::string& line);  // to its input, with an end
  // The same, unless the output ends or the deadline passes first.
  std::optional<std::string> ReadLine(
      std::chrono::steady_clock::time_point deadline);
  void CloseInput();
  pid_t pid() const { return pid_; }  // -1 once it was waited for
  void Kill(int signal);
  int Wait();  // the exit status as wait(2) gives it
  // The same, unless the deadline passes first.
  std::optional<int> Wait(std::chrono::steady_clock::time_point deadline);

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string line_;  // the part of one that has come
};

}  // namespace baton
