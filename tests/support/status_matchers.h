// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::testing {

inline absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// EXPECT_THAT(result, IsOk());
MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// EXPECT_THAT(result, Fails(absl::StatusCode::kNotFound, "bob"));
MATCHER_P2(Fails, code, text, "fails with that code and a text that has that") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         std::string(StatusOf(arg).message()).find(text) != std::string::npos;
}

}  // namespace baton::testing
