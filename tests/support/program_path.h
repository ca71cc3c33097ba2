// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <filesystem>
#include <string>

namespace baton::testing {

// Returns the path of a program that lies beside the running one, in the build
// tree as well as in a bundle (tools/bundle.sh).
inline std::string ProgramPath(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

}  // namespace baton::testing
