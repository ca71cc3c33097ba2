// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "core/random.h"

namespace baton::testing {

// So many sentences in which each word but the first tells the next one. Only
// which of three comes is not told: a perplexity of 3^(1/7) = 1.17 at best.
inline std::string Sentences(int64_t count) {
  const std::string sentences[] = {"the cat sat on a mat\n",
                                   "my dog ran to its home\n",
                                   "no bird flew over that hill\n"};
  Generator generator(7);
  std::string text;
  for (const int64_t number :
       RandInt(0, 3, {count}, generator).ToVector<int64_t>())
    text += sentences[number];
  return text;
}

}  // namespace baton::testing
