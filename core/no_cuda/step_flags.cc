// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/step_flags.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void LoadFlagKernels(int) { FailWithoutCuda("step_flag"); }
void BeginStep(uint64_t*, uint64_t, const Stream&) {
  FailWithoutCuda("step_flag");
}
void DecideStep(const uint64_t*, uint64_t*, const Tensor&) {
  FailWithoutCuda("step_flag");
}
void RaiseFlagUnless(const Tensor&, uint64_t*, const uint64_t*) {
  FailWithoutCuda("step_flag");
}
void RaiseFlag(uint64_t*, const uint64_t*, const Stream&) {
  FailWithoutCuda("step_flag");
}
void AwaitFlag(const uint64_t*, const uint64_t*, const Stream&) {
  FailWithoutCuda("step_flag");
}

}  // namespace baton::cuda
