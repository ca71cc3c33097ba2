// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/status.h"

#include "core/status.h"

namespace baton::cuda {

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
  Check("device", cudaGetDevice(&former_));
  if (device != former_) {
    const cudaError_t error = cudaSetDevice(device);
    if (error == cudaErrorInvalidDevice || error == cudaErrorNoDevice) {
      int count = 0;
      if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
      cudaGetLastError();
      Fail("device",
           absl::StrCat("there is no cuda:", device, ": this process sees ",
                        count, " GPUs"),
           absl::StatusCode::kFailedPrecondition);
    }
    Check("device", error);
  }
}

DeviceScope::~DeviceScope() {
  int device = former_;
  if (cudaGetDevice(&device) == cudaSuccess && device != former_)
    cudaSetDevice(former_);
}

}  // namespace baton::cuda
