// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "core/device.h"

namespace baton::nn {

// While one lives, what the calling thread gives torch to do on `device` goes
// to Baton's current stream there, in order with Baton's ops. On the CPU it is
// nothing. Throws Error for a GPU where LibTorch or Baton was built without
// CUDA. Confined to its thread.
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
