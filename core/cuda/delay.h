// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>

#include "core/stream.h"

namespace baton::cuda {

// Delays later work of `stream`, which is a GPU's, by `time` after its present
// work. The host can then enqueue several short kernels, which run without
// gaps: this is for measuring them.
void Delay(const Stream& stream, std::chrono::nanoseconds time);

}  // namespace baton::cuda
