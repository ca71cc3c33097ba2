// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace baton::rpc {

// A line of a program, taken where a default argument is filled in:
//   void Make(Place where = Place::Here());
// (As std::source_location, which clang 14 does not have.) Value type.
struct Place {
  const char* file = "";  // as the compiler was given it; never freed
  int line = 0;           // 0: not known

  static constexpr Place Here(const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
    return {file, line};
  }
  std::string ToString() const;  // "trainer.cc:45"; empty where not known
};

}  // namespace baton::rpc
