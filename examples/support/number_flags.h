// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace baton::examples {

// A flag's list of numbers. InvalidArgument names the flag where one is less
// than `least` or no number.
absl::StatusOr<std::vector<int64_t>> NumbersOf(
    const absl::Flag<std::vector<std::string>>& flag, const char* name,
    int64_t least);

absl::Status CheckAtLeast(absl::string_view name, int64_t value, int64_t least);

// InvalidArgument names the first of the flags that is less than `least`.
template <typename... Numbers>
absl::Status AtLeast(int64_t least, const absl::Flag<Numbers>&... flags) {
  absl::Status wrong;
  (wrong.Update(CheckAtLeast(absl::GetFlagReflectionHandle(flags).Name(),
                             absl::GetFlag(flags), least)),
   ...);
  return wrong;
}

}  // namespace baton::examples
