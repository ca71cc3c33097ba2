// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/launch.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/stream.h"

namespace baton::cuda {
namespace {

constexpr int kBlocksPerMultiprocessor = 32;

}  // namespace

int Launch::DeviceOf(const char* op, Operands written, Operands read) {
  int device = -1;
  for (const Operands& operands : {written, read}) {
    for (const Tensor* x : operands) {
      if (!x->defined()) continue;
      Require(x->device().is_cuda() &&
                  (device < 0 || x->device().index() == device),
              op, "expected tensors on one GPU, got one on ",
              x->device().ToString());
      device = x->device().index();
    }
  }
  Require(device >= 0, op, "no operand is defined");
  return device;
}

Launch::Launch(const char* op, Operands written, Operands read)
    : op_(op),
      device_(DeviceOf(op, written, read)),
      scope_(device_),
      current_(CurrentStream(Device::Cuda(device_))),
      stream_(NativeStream(current_)) {
  MarkStream(device_, current_.index());
  CaptureLog* capture = CurrentCapture();
  for (const Tensor* x : read) {
    if (!x->defined() || !x->storage()->use()) continue;
    const std::shared_ptr<StreamUse>& use = x->storage()->use();
    use->Read(current_);
    if (capture == nullptr) continue;
    capture->read.push_back(x->storage());
    recorded_.push_back(use);
  }
  for (const Tensor* x : written) {
    if (!x->defined() || !x->storage()->use()) continue;
    const std::shared_ptr<StreamUse>& use = x->storage()->use();
    use->Write(current_);
    if (capture == nullptr) continue;
    capture->written.push_back(x->storage());
    recorded_.push_back(use);
  }
}

// Extends the uses for the sake of recordings, where waits for later operands
// and nested launches have put marks before this launch's own work.
Launch::~Launch() {
  for (const auto& use : recorded_) use->Extend(current_);
}

int Launch::multiprocessors() const {
  static std::array<std::atomic<int>, 64> known = {};
  std::atomic<int>& count = known[static_cast<size_t>(device_)];
  if (count == 0) {
    int value = 0;
    Check(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount,
                                 device_));
    count = value;
  }
  return count;
}

int Launch::Blocks(int64_t n, int threads, int per_thread) const {
  const int64_t each = int64_t{threads} * per_thread;
  const int64_t most = int64_t{multiprocessors()} * kBlocksPerMultiprocessor;
  return static_cast<int>(std::clamp<int64_t>((n + each - 1) / each, 1, most));
}

void Launch::Check() const { cuda::Check(op_, cudaGetLastError()); }

}  // namespace baton::cuda
