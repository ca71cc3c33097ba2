// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/delay.h"
#include "core/cuda/handles.h"
#include "core/cuda/status.h"

namespace baton::cuda {
namespace {

__device__ uint64_t Nanoseconds() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void DelayKernel(uint64_t nanoseconds) {
  const uint64_t begin = Nanoseconds();
  while (Nanoseconds() - begin < nanoseconds) __nanosleep(100);
}

}  // namespace

void Delay(const Stream& stream, std::chrono::nanoseconds time) {
  const DeviceScope scope(stream.device().index());
  DelayKernel<<<1, 1, 0, NativeStream(stream)>>>(
      static_cast<uint64_t>(time.count()));
  Check("delay", cudaGetLastError());
}

}  // namespace baton::cuda
