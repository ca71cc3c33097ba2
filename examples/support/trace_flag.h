// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/flags/declare.h"

// The file for a trace; empty: none. tools::CheckOutputs checks that it can be
// written.
ABSL_DECLARE_FLAG(std::string, trace);
