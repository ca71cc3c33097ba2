// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace baton {

// Compute threads that ops called from this thread may use, this one included.
// Per calling thread, like OpenMP's own setting, which it is: oneDNN obeys it
// too. Default: OMP_NUM_THREADS, else all cores of the affinity mask.
void SetComputeThreads(int threads);
int ComputeThreads();

// Runs body(begin, end) over parts of [0, count) of at least `grain` each, and
// returns when all are done. What the body throws is rethrown here.
void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace baton
