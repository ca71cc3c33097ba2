// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/cuda/status.h"
#include "core/stream.h"
#include "core/stream_use.h"
#include "core/tensor.h"

namespace baton::cuda {

// What every kernel's host function begins with. Makes the operands' device the
// thread's, takes the thread's current stream of it, and lets that stream wait
// for other streams' work on the operands:
//
//   const Launch launch("add", {&out}, {&a, &b});
//   AddKernel<<<launch.Blocks(n, 256), 256, 0, launch.stream()>>>(...);
//   launch.Check();
//
// Undefined operands are passed over; the others are on one GPU. `op` leads
// error texts. Use it within one function, on one thread: what the stream is
// given while it lives is taken for work on the operands.
class Launch {
 public:
  using Operands = absl::Span<const Tensor* const>;
  Launch(const char* op, Operands written, Operands read);
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  cudaStream_t stream() const { return stream_; }
  int device() const { return device_; }
  int multiprocessors() const;
  // Blocks of `threads` for `n` elements, each thread doing `per_thread`: at
  // most 32 blocks a multiprocessor, so kernels loop with a grid stride.
  int Blocks(int64_t n, int threads, int per_thread = 1) const;
  // Throws what the launch since the last check reported.
  void Check() const;
  void Check(cudaError_t error) const { cuda::Check(op_, error); }

 private:
  static int DeviceOf(const char* op, Operands written, Operands read);

  const char* const op_;
  const int device_;
  const DeviceScope scope_;
  const Stream current_;
  cudaStream_t stream_;
  std::vector<std::shared_ptr<StreamUse>> recorded_;  // of the operands
};

}  // namespace baton::cuda
