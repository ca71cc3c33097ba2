// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <signal.h>

namespace baton::tools {

// Those that RunAll waits for.
sigset_t RunSignals();

// Keeps them to the calling thread, also those that a library's thread takes,
// which may have begun before main.
void BlockSignals();

}  // namespace baton::tools
