// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/ipc.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "core/cuda/allocator.h"
#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/owned_event.h"
#include "core/cuda/release.h"
#include "core/cuda/status.h"
#include "core/cuda/stream.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "ipc";

template <typename Handle>
std::string BytesOf(const Handle& handle) {
  return std::string(reinterpret_cast<const char*>(&handle), sizeof(handle));
}

template <typename Handle>
Handle HandleOf(const std::string& bytes) {
  Handle handle{};
  Require(bytes.size() == sizeof(handle), kOp, "a handle of ", bytes.size(),
          " bytes instead of ", sizeof(handle));
  std::memcpy(&handle, bytes.data(), sizeof(handle));
  return handle;
}

}  // namespace

std::string UuidOf(int device) {
  cudaDeviceProp properties;
  Check(kOp, cudaGetDeviceProperties(&properties, device));
  return BytesOf(properties.uuid);
}

std::optional<PlaceInSegment> PlaceOf(const Tensor& tensor) {
  if (CurrentCapture() != nullptr) return std::nullopt;
  const auto* block = static_cast<const char*>(tensor.storage()->data());
  const Segment segment = SegmentOf(block, tensor.device().index());
  if (segment.base == nullptr) return std::nullopt;
  const auto* first = static_cast<const char*>(tensor.raw_data());
  return PlaceInSegment{
      segment.base, segment.bytes,
      static_cast<size_t>(first - static_cast<const char*>(segment.base))};
}

std::string ShareSegment(void* segment, int device) {
  const DeviceScope scope(device);
  cudaIpcMemHandle_t handle;
  Check(kOp, cudaIpcGetMemHandle(&handle, segment));
  HoldSegment(segment, device);
  return BytesOf(handle);
}

void UnshareSegment(void* segment, int device) {
  UnholdSegment(segment, device);
}

std::shared_ptr<void> OpenSegment(const std::string& handle, int device) {
  const DeviceScope scope(device);
  void* base = nullptr;
  Check(kOp, cudaIpcOpenMemHandle(&base, HandleOf<cudaIpcMemHandle_t>(handle),
                                  cudaIpcMemLazyEnablePeerAccess));
  return std::shared_ptr<void>(base, [device](void* opened) {
    OnDevice(device, [&] { cudaIpcCloseMemHandle(opened); });
  });
}

std::shared_ptr<void> MakeSharedEvent(int device) {
  const DeviceScope scope(device);
  cudaEvent_t event = nullptr;
  Check(kOp, cudaEventCreateWithFlags(
                 &event, cudaEventDisableTiming | cudaEventInterprocess));
  return OwnEvent(event, device);
}

std::string HandleOfEvent(void* event, int device) {
  const DeviceScope scope(device);
  cudaIpcEventHandle_t handle;
  Check(kOp, cudaIpcGetEventHandle(&handle, static_cast<cudaEvent_t>(event)));
  return BytesOf(handle);
}

void RecordSharedEvent(void* event, const Stream& stream) {
  const DeviceScope scope(stream.device().index());
  Check(kOp,
        cudaEventRecord(static_cast<cudaEvent_t>(event), NativeStream(stream)));
}

std::shared_ptr<void> OpenSharedEvent(const std::string& handle, int device) {
  const DeviceScope scope(device);
  cudaEvent_t event = nullptr;
  Check(kOp,
        cudaIpcOpenEventHandle(&event, HandleOf<cudaIpcEventHandle_t>(handle)));
  return OwnEvent(event, device);
}

bool SharedEventHasEnded(void* event, int device) {
  return OwnedEventHasEnded(event, device);
}

absl::AnyInvocable<bool()> CopyFromSegment(const Tensor& target,
                                           const void* source,
                                           const Stream& stream) {
  const DeviceScope scope(target.device().index());
  // Made before the copy, which nobody could query if this failed.
  StreamPoint copied(stream);
  target.storage()->use()->Write(stream);
  Check(kOp, cudaMemcpyAsync(target.raw_data(), source, target.nbytes(),
                             cudaMemcpyDeviceToDevice, NativeStream(stream)));
  copied.Record();
  return copied;
}

void CopyToSegment(const Tensor& target, const Tensor& source,
                   const Stream& stream) {
  const int device = stream.device().index();
  const DeviceScope scope(device);
  MarkStream(device, stream.index());
  source.storage()->use()->Read(stream);
  target.storage()->use()->Write(stream);
  NoteCopy(target, source);
  Check(kOp,
        cudaMemcpyAsync(target.raw_data(), source.raw_data(), source.nbytes(),
                        cudaMemcpyDeviceToDevice, NativeStream(stream)));
  source.storage()->use()->Extend(stream);
  target.storage()->use()->Extend(stream);
}

}  // namespace baton::cuda
