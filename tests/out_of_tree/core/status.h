// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// A folder and macros that other projects have, too: Baton's must not meet
// them.
#define RETURN_IF_ERROR(expr) static_assert(false, "of another project")
#define ASSIGN_OR_RETURN(lhs, expr) static_assert(false, "of another project")

inline constexpr int kWorked = 0;
inline constexpr int kFailed = 1;
