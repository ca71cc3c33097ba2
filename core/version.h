// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace baton {

// CMake also reads the version here.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace baton
