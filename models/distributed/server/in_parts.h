// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/compute_threads.h"
#include "core/parallel.h"

namespace baton::dist {

// The number of elements to step or copy for which another thread pays.
inline constexpr int64_t kElementsForThread = 1 << 20;

// Runs body(begin, end) over parts of [0, count) of at least `grain` each, like
// ParallelFor. The body's own ops use one thread, so that other threads are
// woken only once: each wake-up costs more than a short op, and if other
// programs use the cores it lasts until one of them is free. For work on the
// CPU.
inline void InParts(int64_t count, int64_t grain,
                    absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    const ComputeThreadsScope alone(1);
    body(begin, end);
  });
}

}  // namespace baton::dist
