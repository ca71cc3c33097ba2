// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace baton::examples {

// Shows the progress of a run: on a terminal in one line that is rewritten,
// otherwise as a line every few seconds. Confined to one thread.
class Progress {
 public:
  // `label` begins every line; `steps` is the number of Step calls to come;
  // `items` names what each of them processes.
  Progress(std::string label, std::string items, int64_t steps,
           std::FILE* out = stderr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call this after each step, with its loss and the number of items.
  void Step(double loss, int64_t items);

 private:
  using Clock = std::chrono::steady_clock;
  std::string Line(double loss, double seconds) const;
  void Show(const std::string& line);

  const std::string label_;
  const std::string items_;
  const int64_t steps_;
  std::FILE* const out_;
  const bool terminal_;
  const Clock::time_point begin_;
  Clock::time_point shown_;
  int64_t done_ = 0;
  int64_t gone_through_ = 0;
  bool open_line_ = false;
};

// Returns "4.2 s", "3 min 05 s" or "2 h 10 min".
std::string FormatDuration(double seconds);

}  // namespace baton::examples
