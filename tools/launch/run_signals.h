// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <signal.h>

namespace baton::tools {

// Returns the signals that RunAll waits for.
sigset_t RunSignals();

// Directs these signals to the calling thread, also those that a thread of a
// library takes, which may have begun before main.
void BlockSignals();

}  // namespace baton::tools
