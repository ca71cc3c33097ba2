// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "core/device.h"

namespace baton::nn {

// While it lives, torch enqueues the calling thread's work for `device` on
// Baton's current stream, in order with Baton's ops. Has no effect for the CPU.
// Throws Error for a GPU if LibTorch or Baton was built without CUDA. Confined
// to its thread.
class TorchStream {
 public:
  explicit TorchStream(Device device);
  ~TorchStream();
  TorchStream(const TorchStream&) = delete;
  TorchStream& operator=(const TorchStream&) = delete;

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

}  // namespace baton::nn
