// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/status.h"

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "core/status.h"

namespace baton::cuda {
namespace {

// The runtime has no call for it, and the driver's library is not linked.
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

// Whether this process has a context there, or may have one. One that was seen
// is taken to stay: launches on a second GPU ask this each time.
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

}  // namespace

void Check(const char* op, cudaError_t error) {
  if (error == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // what is reported here is not reported again
  Fail(op,
       absl::StrCat("CUDA: ", cudaGetErrorName(error), ": ",
                    cudaGetErrorString(error)),
       absl::StatusCode::kInternal);
}

DeviceScope::DeviceScope(int device) {
  cudaError_t error = cudaGetDevice(&former_);
  if (error == cudaSuccess && device != former_) error = cudaSetDevice(device);
  if (error == cudaErrorInvalidDevice || error == cudaErrorNoDevice ||
      error == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    int count = 0;
    const cudaError_t counted = cudaGetDeviceCount(&count);
    cudaGetLastError();
    Fail("device",
         counted == cudaSuccess
             ? absl::StrCat("there is no cuda:", device, ": this process sees ",
                            count, " GPUs")
             : absl::StrCat("there is no cuda:", device,
                            ": this process sees no GPU (",
                            cudaGetErrorString(counted), ")"),
         absl::StatusCode::kFailedPrecondition);
  }
  Check("device", error);
}

// cudaSetDevice makes a context where there is none, of hundreds of megabytes.
// So a former device without one was never chosen: the thread had it by
// default, and stays at the new one.
DeviceScope::~DeviceScope() {
  int device = former_;
  if (cudaGetDevice(&device) == cudaSuccess && device != former_ &&
      MayHaveContext(former_))
    cudaSetDevice(former_);
}

}  // namespace baton::cuda
