// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/ipc.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <utility>

#include "core/cuda/allocator.h"
#include "core/cuda/capture.h"
#include "core/cuda/gates.h"
#include "core/cuda/handles.h"
#include "core/cuda/release.h"
#include "core/cuda/status.h"
#include "core/log.h"
#include "core/mutex.h"
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

std::shared_ptr<void> OwnedEvent(cudaEvent_t event, int device) {
  return std::shared_ptr<void>(event, [device](void* made) {
    OnDevice(device, [&] { cudaEventDestroy(static_cast<cudaEvent_t>(made)); });
  });
}

bool HasEnded(void* event) {
  const cudaError_t error = cudaEventQuery(static_cast<cudaEvent_t>(event));
  if (error == cudaErrorNotReady) return false;
  if (error != cudaSuccess) {
    cudaGetLastError();
    LogWarning("an event of another process: ", cudaGetErrorString(error));
  }
  return true;
}

// A gate that is opened out of turn would open those before it, and let copies
// begin too soon; so pulls open theirs one by one, from the front.
class Lane final : public PullLane, public std::enable_shared_from_this<Lane> {
 public:
  explicit Lane(const Stream& stream)
      : stream_(stream), gates_(stream.device().index()) {}

  const Stream& stream() const override { return stream_; }
  std::unique_ptr<Pull> Begin(const Tensor& target, const void* source,
                              std::shared_ptr<void> ready) override;

 private:
  class One;
  const Stream stream_;
  Mutex mutex_;  // what the stream is given for one pull stays together
  Gates gates_;  // closed under the mutex
};

class Lane::One final : public Pull {
 public:
  One(std::shared_ptr<Lane> lane, std::shared_ptr<void> ready)
      : lane_(std::move(lane)), ready_(std::move(ready)) {}
  // The stream must not be left waiting.
  ~One() override {
    if (gate_.has_value()) lane_->gates_.Open(*gate_);
  }

  void Start(const Tensor& target, const void* source) {
    const DeviceScope scope(target.device().index());
    auto* const stream = NativeStream(lane_->stream_);
    cudaEvent_t event = nullptr;
    Check(kOp, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    done_ = OwnedEvent(event, target.device().index());
    const bool ready = HasEnded(ready_.get());
    MutexLock lock(lane_->mutex_);
    if (!ready) gate_ = lane_->gates_.Close(stream);
    target.storage()->use()->Write(lane_->stream_);
    Check(kOp, cudaMemcpyAsync(target.raw_data(), source, target.nbytes(),
                               cudaMemcpyDeviceToDevice, stream));
    Check(kOp, cudaEventRecord(event, stream));
  }

  bool Poll(bool give_up) override {
    const DeviceScope scope(lane_->stream_.device().index());
    if (gate_.has_value()) {
      if (!give_up && !HasEnded(ready_.get())) return false;
      if (!lane_->gates_.IsNext(*gate_)) return false;
      lane_->gates_.Open(*gate_);
      gate_.reset();
    }
    return HasEnded(done_.get());
  }

 private:
  const std::shared_ptr<Lane> lane_;
  const std::shared_ptr<void> ready_;
  std::shared_ptr<void> done_;
  std::optional<uint32_t> gate_;  // while it is closed
};

std::unique_ptr<Pull> Lane::Begin(const Tensor& target, const void* source,
                                  std::shared_ptr<void> ready) {
  auto pull = std::make_unique<One>(shared_from_this(), std::move(ready));
  pull->Start(target, source);
  return pull;
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
  return OwnedEvent(event, device);
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
  return OwnedEvent(event, device);
}

std::shared_ptr<PullLane> MakePullLane(const Stream& stream) {
  return std::make_shared<Lane>(stream);
}

}  // namespace baton::cuda
