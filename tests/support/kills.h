// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdlib>

namespace baton::testing {

// Returns how often a test kills its subject at random moments: `few` times, or
// as often as BATON_KILLS says (BATON_KILLS=100 tests/run.sh -R Kill).
inline int Kills(int few) {
  const char* text = std::getenv("BATON_KILLS");
  const int kills = text == nullptr ? 0 : std::atoi(text);
  return kills > 0 ? kills : few;
}

}  // namespace baton::testing
