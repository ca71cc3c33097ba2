// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace baton {

// Sets the number of threads, including this one, that ops called from this
// thread may use. It is OpenMP's own setting for the calling thread, so oneDNN
// obeys it, too. Default: OMP_NUM_THREADS, else all cores of the affinity mask.
void SetComputeThreads(int threads);
int ComputeThreads();

// Runs body(begin, end) over parts of [0, count), each of at least `grain`, and
// returns when all are done. Rethrows an exception of the body.
void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace baton
