// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace baton::examples {

// Shows how far a run is: one line that rewrites itself on a terminal, and a
// plain line every few seconds otherwise. Confined to one thread.
class Progress {
 public:
  // `label` leads every line; `steps` is the number of Step calls to come, each
  // through some `items`.
  Progress(std::string label, std::string items, int64_t steps,
           std::FILE* out = stderr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // After each step: its loss and the items that it went through.
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

// "4.2 s", "3 min 05 s", "2 h 10 min".
std::string FormatDuration(double seconds);

}  // namespace baton::examples
