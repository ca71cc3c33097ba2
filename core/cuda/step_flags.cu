// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/handles.h"
#include "core/cuda/launch.h"
#include "core/cuda/status.h"
#include "core/cuda/step_flags.h"
#include "core/cuda/stream.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "step_flag";

// Reads the host's words less often than the flag, which is nearer.
constexpr unsigned kLooks = 64;
constexpr unsigned kPause = 50;  // nanoseconds

// The words of StepNumber (core/step_flags.cc).
enum Word { kStep = 0, kGivenUp = 1, kDecided = 2 };

__global__ void AwaitKernel(const volatile uint64_t* flag,
                            const volatile uint64_t* words) {
  const uint64_t step = words[kStep];
  for (unsigned looks = 1; *flag < step; ++looks) {
    if (looks % kLooks == 0 && words[kGivenUp] >= step) return;
    __nanosleep(kPause);
  }
  __threadfence_system();
}

__global__ void RaiseKernel(volatile uint64_t* flag,
                            const volatile uint64_t* words) {
  const uint64_t step = words[kStep];
  if (words[kGivenUp] >= step) return;
  __threadfence_system();
  *flag = step;
  __threadfence_system();
}

__global__ void BeginKernel(volatile uint64_t* words, uint64_t step) {
  words[kStep] = step;
}

__global__ void DecideKernel(const volatile uint64_t* flag,
                             volatile uint64_t* words, float* skip) {
  const uint64_t step = words[kStep];
  const bool counts = flag != nullptr ? *flag >= step : words[kGivenUp] < step;
  *skip = counts ? 0 : 1;
  if (counts) words[kDecided] = step;
}

__global__ void RaiseUnlessKernel(const float* skip, volatile uint64_t* flag,
                                  const volatile uint64_t* words) {
  if (*skip != 0) return;
  __threadfence_system();
  *flag = words[kStep];
  __threadfence_system();
}

template <typename Kernel>
void Load(Kernel* kernel) {
  cudaFuncAttributes attributes;
  Check(kOp, cudaFuncGetAttributes(&attributes, kernel));
}

}  // namespace

void LoadFlagKernels(int device) {
  const DeviceScope scope(device);
  Load(AwaitKernel);
  // Otherwise a multiprocessor could not give other kernels more shared memory
  // while this kernel, which uses little, waits there; and it may wait long.
  Check(kOp, cudaFuncSetAttribute(
                 AwaitKernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                 cudaSharedmemCarveoutMaxShared));
  Load(RaiseKernel);
  Load(BeginKernel);
  Load(DecideKernel);
  Load(RaiseUnlessKernel);
}

void BeginStep(uint64_t* words, uint64_t step, const Stream& stream) {
  const DeviceScope scope(stream.device().index());
  BeginKernel<<<1, 1, 0, NativeStream(stream)>>>(words, step);
  Check(kOp, cudaGetLastError());
}

void DecideStep(const uint64_t* flag, uint64_t* words, const Tensor& skip) {
  const Launch launch(kOp, {&skip}, {});
  DecideKernel<<<1, 1, 0, launch.stream()>>>(
      flag, words, static_cast<float*>(skip.raw_data()));
  launch.Check();
}

void RaiseFlagUnless(const Tensor& skip, uint64_t* flag,
                     const uint64_t* words) {
  const Launch launch(kOp, {}, {&skip});
  RaiseUnlessKernel<<<1, 1, 0, launch.stream()>>>(
      static_cast<const float*>(skip.raw_data()), flag, words);
  launch.Check();
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
