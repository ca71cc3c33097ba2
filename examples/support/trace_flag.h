// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace baton::examples {

// The file that --trace names; empty if it is not given. The error says why the
// file cannot be written.
absl::StatusOr<std::string> TracePathFromFlags();

}  // namespace baton::examples
