// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"

namespace baton::examples {

// A flag's list of numbers. InvalidArgument names the flag and what is less
// than `least` or no number.
absl::StatusOr<std::vector<int64_t>> NumbersOf(
    const absl::Flag<std::vector<std::string>>& flag, int64_t least);

}  // namespace baton::examples
