// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/functional/function_ref.h"

namespace baton::tools {

// Divides what a process prints into lines. A line of more than 64 KiB comes in
// parts. Thread-compatible.
class OutputLines {
 public:
  using OnLine = absl::FunctionRef<void(const std::string&)>;

  // Reads what there is in a non-blocking descriptor. Returns false at its end.
  bool Read(int fd, OnLine on_line);
  // What has come of a line without an end.
  void Flush(OnLine on_line);

 private:
  std::string line_;
};

}  // namespace baton::tools
