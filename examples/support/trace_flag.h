// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/flags/declare.h"

// The file of a trace; empty for none. tools::CheckOutputs tries it, once.
ABSL_DECLARE_FLAG(std::string, trace);
