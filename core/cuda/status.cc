// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/status.h"

#include "core/cuda/contexts.h"
#include "core/status.h"

namespace baton::cuda {

void Check(const char* op, cudaError_t error) {
  if (error == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // an error that is reported here must not be reported
                       // again
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

// cudaSetDevice makes a context of hundreds of megabytes if there is none. A
// former device without one was never chosen, but only the thread's default. So
// the thread stays at the new device.
DeviceScope::~DeviceScope() {
  int device = former_;
  if (cudaGetDevice(&device) == cudaSuccess && device != former_ &&
      MayHaveContext(former_))
    cudaSetDevice(former_);
}

}  // namespace baton::cuda
