// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/functional/function_ref.h"

namespace baton::tools {

// Divides a process's output into lines. A line of more than 64 KiB is
// delivered in parts. Thread-compatible.
class OutputLines {
 public:
  using OnLine = absl::FunctionRef<void(const std::string&)>;

  // Reads all that a non-blocking descriptor has. Returns false at its end.
  bool Read(int fd, OnLine on_line);
  // Delivers the part of a line that has no end yet.
  void Flush(OnLine on_line);

 private:
  std::string line_;
};

}  // namespace baton::tools
