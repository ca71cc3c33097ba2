// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/written.h"

#include <memory>

#include "core/cuda/handles.h"
#include "core/cuda/release.h"
#include "core/cuda/status.h"

namespace baton::cuda {
namespace {
constexpr char kOp[] = "whether a tensor is written";
}

absl::AnyInvocable<bool()> WhenWritten(const Tensor& tensor) {
  const int device = tensor.device().index();
  const Stream stream = CurrentStream(tensor.device());
  tensor.storage()->use()->Read(stream);
  const DeviceScope scope(device);
  cudaEvent_t event = nullptr;
  Check(kOp, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const std::shared_ptr<void> owned(event, [device](void* made) {
    OnDevice(device, [&] { cudaEventDestroy(static_cast<cudaEvent_t>(made)); });
  });
  Check(kOp, cudaEventRecord(event, NativeStream(stream)));
  return [owned, device] {
    cudaError_t state = cudaSuccess;
    OnDevice(device, [&] {
      state = cudaEventQuery(static_cast<cudaEvent_t>(owned.get()));
    });
    return state != cudaErrorNotReady;
  };
}

}  // namespace baton::cuda
