// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdio>

#include "absl/flags/parse.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/status.h"

namespace baton::bench {

// The main of a program that takes flags: runs it and says what went wrong.
inline int Main(int argc, char** argv, absl::FunctionRef<absl::Status()> run) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = CatchErrors([&] { return run(); });
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace baton::bench
