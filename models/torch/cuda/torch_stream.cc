// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/torch/torch_stream.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "core/cuda/stream.h"
#include "core/stream.h"

namespace baton::nn {

struct TorchStream::Guard {
  explicit Guard(const Stream& stream)
      : guard(c10::cuda::getStreamFromExternal(
            static_cast<cudaStream_t>(
                cuda::StreamHandle(stream.device().index(), stream.index())),
            static_cast<c10::DeviceIndex>(stream.device().index()))) {}
  c10::cuda::CUDAStreamGuard guard;
};

TorchStream::TorchStream(Device device)
    : guard_(device.is_cuda() ? std::make_unique<Guard>(CurrentStream(device))
                              : nullptr) {}

TorchStream::~TorchStream() = default;

}  // namespace baton::nn
