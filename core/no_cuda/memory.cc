// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/memory.h"

#include "core/status.h"

namespace baton::cuda {
namespace {

[[noreturn]] void FailWithoutCuda(const char* op) {
  Fail(op,
       "this build of Baton has no CUDA: configure with -DBATON_CUDA=ON on a "
       "machine with the CUDA toolkit",
       absl::StatusCode::kFailedPrecondition);
}

}  // namespace

int DeviceCount() { return 0; }
void* Allocate(size_t, int) { FailWithoutCuda("allocate"); }
void Free(void*, int) { FailWithoutCuda("free"); }
void Copy(const Tensor&, const Tensor&) { FailWithoutCuda("copy"); }
void Fill(const Tensor&, double) { FailWithoutCuda("fill"); }

}  // namespace baton::cuda
