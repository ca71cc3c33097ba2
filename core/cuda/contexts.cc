// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/contexts.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

namespace baton::cuda {
namespace {

// The runtime has no call for this, and the driver's library is not linked.
using PrimaryState = CUresult (*)(CUdevice, unsigned int*, int*);
PrimaryState FindPrimaryState() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(
      "cuDevicePrimaryCtxGetState", &found, 12000, cudaEnableDefault, &result);
  if (error == cudaSuccess && result == cudaDriverEntryPointSuccess)
    return reinterpret_cast<PrimaryState>(found);
  cudaGetLastError();
  return nullptr;
}

}  // namespace

bool MayHaveContext(int device) {
  static std::atomic<uint64_t> seen{0};
  const uint64_t bit = uint64_t{1} << (device % 64);
  if ((seen.load(std::memory_order_relaxed) & bit) != 0) return true;
  static const PrimaryState state = FindPrimaryState();
  unsigned int flags = 0;
  int active = 1;
  if (state != nullptr && state(device, &flags, &active) == CUDA_SUCCESS &&
      active == 0)
    return false;
  seen.fetch_or(bit, std::memory_order_relaxed);
  return true;
}

int DeviceWithContext() {
  int current = 0, count = 0;
  if (cudaGetDevice(&current) != cudaSuccess ||
      cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // a scope of the first device reports the error
    return 0;
  }
  if (MayHaveContext(current)) return current;
  for (int device = 0; device < count; ++device) {
    if (MayHaveContext(device)) return device;
  }
  return current;
}

}  // namespace baton::cuda
