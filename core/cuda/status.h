// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

namespace baton::cuda {

// Throws Error(Internal, "[op] CUDA: NAME: text") unless `error` is success.
void Check(const char* op, cudaError_t error);

// Makes `device` the calling thread's device while the scope lives.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int former_ = 0;
};

}  // namespace baton::cuda
