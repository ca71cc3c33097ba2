// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace baton::rpc {

// Details of a failed call, beside the error text, which reads "bob,
// Stage::Forward: cause". With nested calls, the innermost failed call.
struct CallError {
  std::string worker;
  std::string method;
  bool retryable = false;  // the method did not run
};

// Returns nothing if `status` is not from a failed call.
std::optional<CallError> CallErrorOf(const absl::Status& status);

// Returns `status` with "worker, method: " in front and with a CallError,
// unless it has one already.
absl::Status CallFailed(const absl::Status& status, const CallError& error);

}  // namespace baton::rpc
