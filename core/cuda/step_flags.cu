// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/handles.h"
#include "core/cuda/status.h"
#include "core/cuda/step_flags.h"
#include "core/cuda/stream.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "step_flag";

// The host's words are looked at less often than the flag, which is nearer.
constexpr unsigned kLooks = 64;
constexpr unsigned kPause = 50;  // nanoseconds

// `words`: the step, and up to which they are given up.
__global__ void AwaitKernel(const volatile uint64_t* flag,
                            const volatile uint64_t* words) {
  const uint64_t step = words[0];
  for (unsigned looks = 1; *flag < step; ++looks) {
    if (looks % kLooks == 0 && words[1] >= step) return;
    __nanosleep(kPause);
  }
  __threadfence_system();
}

__global__ void RaiseKernel(volatile uint64_t* flag,
                            const volatile uint64_t* words) {
  const uint64_t step = words[0];
  if (words[1] >= step) return;
  __threadfence_system();
  *flag = step;
  __threadfence_system();
}

}  // namespace

void LoadFlagKernels(int device) {
  const DeviceScope scope(device);
  cudaFuncAttributes attributes;
  Check(kOp, cudaFuncGetAttributes(&attributes, AwaitKernel));
  Check(kOp, cudaFuncGetAttributes(&attributes, RaiseKernel));
}

void RaiseFlag(uint64_t* flag, const uint64_t* words, const Stream& stream) {
  const DeviceScope scope(stream.device().index());
  MarkStream(stream.device().index(), stream.index());
  RaiseKernel<<<1, 1, 0, NativeStream(stream)>>>(flag, words);
  Check(kOp, cudaGetLastError());
}

void AwaitFlag(const uint64_t* flag, const uint64_t* words,
               const Stream& stream) {
  const DeviceScope scope(stream.device().index());
  MarkStream(stream.device().index(), stream.index());
  AwaitKernel<<<1, 1, 0, NativeStream(stream)>>>(flag, words);
  Check(kOp, cudaGetLastError());
}

}  // namespace baton::cuda
