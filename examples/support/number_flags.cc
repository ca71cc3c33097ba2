// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/number_flags.h"

#include "absl/flags/reflection.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/command_line.h"

namespace baton::examples {

absl::StatusOr<std::vector<int64_t>> NumbersOf(
    const absl::Flag<std::vector<std::string>>& flag, int64_t least) {
  std::vector<int64_t> numbers;
  for (const std::string& text : absl::GetFlag(flag)) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number) || number < least) {
      return tools::WrongFlag(absl::GetFlagReflectionHandle(flag).Name(),
                              absl::StrCat("takes numbers of ", least,
                                           " or more, not '", text, "'"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace baton::examples
