// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace baton::testing {

// The path of a committed reference value, made by tools/golden: in the source
// tree, or where the variable BATON_GOLDEN_DIR says (a bundle brings its own).
std::string GoldenPath(const std::string& name);

}  // namespace baton::testing
