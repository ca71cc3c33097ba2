// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <ostream>
#include <string>

namespace baton::testing {

// A parameter of tests with the name that they get from it:
//   INSTANTIATE_TEST_SUITE_P(DTypes, Golden,
//                            ::testing::Values(Named<DType>{"f32", kF32}),
//                            ::testing::PrintToStringParamName());
// GoogleTest knows no names of enums, and would print their bytes. Value type.
template <typename T>
struct Named {
  std::string name;  // letters, digits and '_'
  T value;
  friend void PrintTo(const Named& named, std::ostream* out) {
    *out << named.name;
  }
};

}  // namespace baton::testing
