// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <ostream>
#include <string>

namespace baton::testing {

// A parameter of tests with a name, which becomes part of the tests' names:
//   INSTANTIATE_TEST_SUITE_P(DTypes, Golden,
//                            ::testing::Values(Named<DType>{"f32", kF32}),
//                            ::testing::PrintToStringParamName());
// Without it, GoogleTest would print the bytes of an enum. Value type.
template <typename T>
struct Named {
  std::string name;  // letters, digits and '_'
  T value;
  friend void PrintTo(const Named& named, std::ostream* out) {
    *out << named.name;
  }
};

}  // namespace baton::testing
