// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/progress.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace baton::examples {
namespace {

std::string ReadAll(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
    text.push_back(static_cast<char>(c));
  }
  return text;
}

TEST(Progress, FileGetsPlainLinesForFirstAndLastStep) {
  std::FILE* file = std::tmpfile();
  {
    Progress progress("single", "images", 100, file);
    for (int i = 0; i < 100; ++i) progress.Step(0.5, 20);
  }
  const std::string text = ReadAll(file);
  std::fclose(file);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("single  step 1/100"), std::string::npos) << text;
  EXPECT_NE(text.find("step 100/100"), std::string::npos) << text;
  EXPECT_NE(text.find("images/s"), std::string::npos) << text;
}

TEST(Progress, DurationsReadNaturally) {
  EXPECT_EQ(FormatDuration(4.23), "4.2 s");
  EXPECT_EQ(FormatDuration(185), "3 min 05 s");
  EXPECT_EQ(FormatDuration(7800), "2 h 10 min");
}

}  // namespace
}  // namespace baton::examples
