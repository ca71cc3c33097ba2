// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

namespace baton::cuda {

// A word of pinned memory that a stream waits for, again and again. One thread
// at a time closes; any thread opens, also while another one closes and the
// driver lets it wait for room in the stream.
class Gates {
 public:
  explicit Gates(int device);
  ~Gates();
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  // What the stream is given from now on waits for the gate of this number.
  // They count from 1, modulo 2^32, as the device compares them.
  uint32_t Close(cudaStream_t stream);
  // Whether all before it are open, and it is not.
  bool IsNext(uint32_t gate) const { return gate - *word_ == 1; }
  // And all before it.
  void Open(uint32_t gate);

 private:
  using WaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t,
                                 unsigned int);
  static WaitValue FindWaitValue();

  const int device_;
  const WaitValue wait_value_;
  std::atomic<uint32_t>* word_ = nullptr;
  uint32_t closed_ = 0;  // how often
};

}  // namespace baton::cuda
