// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton {

// A program with pipes to its input and from its output. The destructor kills
// it and waits for its end. Confined to one thread.
class ChildProcess {
 public:
  explicit ChildProcess(const std::vector<std::string>& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  std::string ReadLine();  // without its line end; "" at the end of the output
  void WriteLine(const std::string& line);  // to its input
  // The same; nullopt if the output ends or the deadline passes first.
  std::optional<std::string> ReadLine(
      std::chrono::steady_clock::time_point deadline);
  void CloseInput();
  pid_t pid() const { return pid_; }  // -1 once it was waited for
  void Kill(int signal);
  int Wait();  // returns the exit status as wait(2) does
  // The same; nullopt if the deadline passes first.
  std::optional<int> Wait(std::chrono::steady_clock::time_point deadline);

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string line_;  // the part of the next line that has arrived
};

}  // namespace baton
