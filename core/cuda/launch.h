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

// Every kernel's host function begins with a Launch. It makes the operands'
// device the thread's, takes the thread's current stream of that device, and
// makes the stream wait for other streams' work on the operands:
//
//   const Launch launch("add", {&out}, {&a, &b});
//   AddKernel<<<launch.Blocks(n, 256), 256, 0, launch.stream()>>>(...);
//   launch.Check();
//
// Undefined operands are ignored; the others are on one GPU. `op` leads error
// texts. Use it within one function, on one thread: all that the stream is
// given while the Launch lives counts as work on the operands.
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
  // Returns the number of blocks of `threads` for `n` elements, if each thread
  // does `per_thread`. It is at most 32 for each multiprocessor, so kernels
  // must loop with a grid stride.
  int Blocks(int64_t n, int threads, int per_thread = 1) const;
  // Throws Error for what the launch since the last check reported.
  void Check() const;
  void Check(cudaError_t error) const { cuda::Check(op_, error); }

 private:
  static int DeviceOf(const char* op, Operands written, Operands read);

  const char* const op_;
  const int device_;
  const DeviceScope scope_;
  const Stream current_;
  cudaStream_t stream_;
  std::vector<std::shared_ptr<StreamUse>> recorded_;  // the operands'
};

}  // namespace baton::cuda
