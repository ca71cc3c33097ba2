// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/torch/torch_stream.h"

#include "core/status.h"

namespace baton::nn {

struct TorchStream::Guard {};

TorchStream::TorchStream(Device device) {
  Require(device.is_cpu(), "torch_module", device.ToString(),
          " needs a LibTorch with CUDA, and a Baton with it");
}

TorchStream::~TorchStream() = default;

}  // namespace baton::nn
