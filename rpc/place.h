// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace baton::rpc {

// A line of a source file, captured where a default argument is evaluated:
//   void Make(Place where = Place::Here());
// (As std::source_location, which clang 14 does not have.) Value type.
struct Place {
  const char* file = "";  // the path as given to the compiler; never freed
  int line = 0;           // 0: unknown

  static constexpr Place Here(const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
    return {file, line};
  }
  std::string ToString() const;  // "trainer.cc:45"; empty if unknown
};

}  // namespace baton::rpc
