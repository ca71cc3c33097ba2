// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace baton::rpc {

// What a program may want to know of a failed call beside its text, which reads
// "bob, Stage::Forward: cause". Of nested calls it is the innermost.
struct CallError {
  std::string worker;
  std::string method;
  bool retryable = false;  // the method did not run
};

// Nothing for a status that is not of a failed call.
std::optional<CallError> CallErrorOf(const absl::Status& status);

// `status` with "worker, method: " in front and a CallError if it has none.
absl::Status CallFailed(const absl::Status& status, const CallError& error);

}  // namespace baton::rpc
