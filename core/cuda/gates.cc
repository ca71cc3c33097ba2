// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/gates.h"

#include <new>

#include "core/cuda/release.h"
#include "core/cuda/status.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "gate";

}  // namespace

// The runtime has no call for it, and the driver's library is not linked.
Gates::WaitValue Gates::FindWaitValue() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  Check(kOp,
        cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 12000,
                                         cudaEnableDefault, &result));
  Require(result == cudaDriverEntryPointSuccess && found != nullptr, kOp,
          "the driver lets no stream wait for memory");
  return reinterpret_cast<WaitValue>(found);
}

Gates::Gates(int device) : device_(device), wait_value_(FindWaitValue()) {
  const DeviceScope scope(device);
  void* word = nullptr;
  Check(kOp, cudaHostAlloc(&word, sizeof(uint32_t),
                           cudaHostAllocPortable | cudaHostAllocMapped));
  word_ = new (word) std::atomic<uint32_t>(0);
}

Gates::~Gates() {
  OnDevice(device_, [this] { cudaFreeHost(word_); });
}

uint32_t Gates::Close(cudaStream_t stream) {
  const uint32_t gate = closed_ + 1;
  const CUresult result = wait_value_(reinterpret_cast<CUstream>(stream),
                                      reinterpret_cast<CUdeviceptr>(word_),
                                      gate, CU_STREAM_WAIT_VALUE_GEQ);
  Require(result == CUDA_SUCCESS, kOp,
          "a stream cannot wait for memory: CUDA error ",
          static_cast<int>(result));
  return closed_ = gate;
}

void Gates::Open(uint32_t gate) {
  uint32_t open = *word_;
  while (static_cast<int32_t>(gate - open) > 0 &&
         !word_->compare_exchange_weak(open, gate)) {
  }
}

}  // namespace baton::cuda
