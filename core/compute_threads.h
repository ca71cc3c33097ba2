// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/parallel.h"

namespace baton {

// While the scope lives, ops of the calling thread use `threads` compute
// threads.
class ComputeThreadsScope {
 public:
  explicit ComputeThreadsScope(int threads) { SetComputeThreads(threads); }
  ~ComputeThreadsScope() { SetComputeThreads(before_); }
  ComputeThreadsScope(const ComputeThreadsScope&) = delete;
  ComputeThreadsScope& operator=(const ComputeThreadsScope&) = delete;

 private:
  const int before_ = ComputeThreads();
};

}  // namespace baton
