// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace baton::testing {

// Returns the path of a committed reference file, made by tools/golden: in the
// source tree, or in the folder BATON_GOLDEN_DIR (a bundle brings its own).
std::string GoldenPath(const std::string& name);

}  // namespace baton::testing
