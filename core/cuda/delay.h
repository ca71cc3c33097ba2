// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>

#include "core/stream.h"

namespace baton::cuda {

// What `stream` is given from now on begins no sooner than `time` after what it
// has been given before: by then the host has given it several short kernels,
// which run without gaps. For measuring them. Of a GPU.
void Delay(const Stream& stream, std::chrono::nanoseconds time);

}  // namespace baton::cuda
