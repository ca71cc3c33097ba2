// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/models/data/made_files.h"
#include "tests/support/test_files.h"

// Trainings on images, small enough for a test, and what they write of their
// epochs.
namespace baton::examples {

// 32 images of two classes that colour alone tells apart.
inline std::string ColouredFolder(const testing::TempFolder& folder,
                                  const std::string& name) {
  for (int i = 0; i < 16; ++i) {
    folder.Write(absl::StrCat(name, "/red/", i, ".jpg"),
                 data::FlatJpeg(32, 32, 200 + i, 20, 20));
    folder.Write(absl::StrCat(name, "/blue/", i, ".jpg"),
                 data::FlatJpeg(32, 32, 20, 20, 200 + i));
  }
  return folder / name;
}

inline std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace baton::examples
