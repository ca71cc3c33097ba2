// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"

namespace baton::examples {

// Returns the numbers of a list flag. InvalidArgument names the flag and the
// entry that is less than `least` or not a number.
absl::StatusOr<std::vector<int64_t>> NumbersOf(
    const absl::Flag<std::vector<std::string>>& flag, int64_t least);

}  // namespace baton::examples
