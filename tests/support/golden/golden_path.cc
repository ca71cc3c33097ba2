// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/golden/golden_path.h"

#include <cstdlib>

namespace baton::testing {

std::string GoldenPath(const std::string& name) {
  const char* folder = std::getenv("BATON_GOLDEN_DIR");
  return std::string(folder ? folder : BATON_GOLDEN_DIR) + "/" + name;
}

}  // namespace baton::testing
