// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda/ipc.h"
#include "core/cuda/memory.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/channels/dense_view.h"
#include "rpc/channels/ipc_gpu.h"

namespace baton::rpc {
namespace {

// Streams that copies of this process do not use, unless it has many GPUs: the
// one for copies from the GPU of this index, and those after it.
constexpr int kFirstLane = 10;
// One tensor that is not ready holds up the others of its lane; but each lane
// has memory of its own.
constexpr size_t kLanes = 2;

class CudaGpu final : public IpcGpu {
 public:
  explicit CudaGpu(Device own) : own_(own) {}

  int count() const override { return cuda::DeviceCount(); }
  int own() const override { return own_.index(); }
  absl::StatusOr<std::string> Uuid() override {
    return CatchErrors([&]() -> absl::StatusOr<std::string> {
      return cuda::UuidOf(own_.index());
    });
  }

  std::optional<Place> Find(const Tensor& tensor) override {
    const auto place = cuda::PlaceOf(tensor);
    if (!place.has_value()) return std::nullopt;
    return Place{tensor.device().index(), place->segment, place->segment_bytes,
                 place->offset};
  }
  absl::StatusOr<std::string> Share(const Place& place) override {
    return CatchErrors([&]() -> absl::StatusOr<std::string> {
      return cuda::ShareSegment(place.segment, place.gpu);
    });
  }
  void Unshare(const Place& place) override {
    CatchErrors([&] {
      cuda::UnshareSegment(place.segment, place.gpu);
    }).IgnoreError();
  }
  absl::StatusOr<Event> MakeEvent(int gpu) override {
    return CatchErrors([&]() -> absl::StatusOr<Event> {
      Event made{.event = cuda::MakeSharedEvent(gpu), .handle = {}};
      made.handle = cuda::HandleOfEvent(made.event.get(), gpu);
      return made;
    });
  }
  absl::Status Record(const Event& event, const Tensor& tensor) override {
    return CatchErrors([&] {
      const Stream stream = CurrentStream(tensor.device());
      tensor.storage()->use()->Read(stream);
      cuda::RecordSharedEvent(event.event.get(), stream);
    });
  }

  absl::StatusOr<std::shared_ptr<void>> OpenSegment(
      const std::string& handle) override {
    return CatchErrors([&]() -> absl::StatusOr<std::shared_ptr<void>> {
      return cuda::OpenSegment(handle, own_.index());
    });
  }
  absl::StatusOr<std::shared_ptr<void>> OpenEvent(
      const std::string& handle) override {
    return CatchErrors([&]() -> absl::StatusOr<std::shared_ptr<void>> {
      return cuda::OpenSharedEvent(handle, own_.index());
    });
  }
  absl::StatusOr<Pulled> Pull(const TensorSpec& spec, const void* source,
                              std::shared_ptr<void> ready) override {
    return CatchErrors([&]() -> absl::StatusOr<Pulled> {
      const auto lane = NextLane();
      const StreamScope scope(lane->stream());
      Pulled pulled;
      pulled.tensor = DenseView(Storage::Allocate(spec.bytes, own_), spec);
      pulled.pull = lane->Begin(pulled.tensor, source, std::move(ready));
      return pulled;
    });
  }

  absl::StatusOr<Tensor> Upload(const Tensor& host, int gpu) override {
    return CatchErrors([&]() -> absl::StatusOr<Tensor> {
      const Tensor there = host.To(Device::Cuda(gpu));
      CurrentStream(there.device()).Synchronize();
      return there;
    });
  }
  absl::StatusOr<Tensor> Download(const Tensor& tensor) override {
    return CatchErrors(
        [&]() -> absl::StatusOr<Tensor> { return tensor.To(Device::Cpu()); });
  }

 private:
  std::shared_ptr<cuda::PullLane> NextLane() {
    MutexLock lock(mutex_);
    // All at the first, which is that of a proof, because making one is slow.
    while (lanes_.size() < kLanes) {
      const int from = kFirstLane + static_cast<int>(lanes_.size());
      lanes_.push_back(
          cuda::MakePullLane(Stream::ForCopies(Device::Cuda(from), own_)));
    }
    return lanes_[next_++ % kLanes];
  }

  const Device own_;
  Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<cuda::PullLane>> lanes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<IpcGpu> MakeCudaGpu(Device own) {
  return std::make_shared<CudaGpu>(own);
}

absl::Status CheckOwn(const IpcGpu& gpu) {
  if (gpu.count() == 0) return absl::UnavailableError("no GPU");
  if (gpu.own() < gpu.count()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("no cuda:", gpu.own(), " among ", gpu.count(), " GPUs"));
}

absl::Status CheckDevice(Device device) {
  const int count = cuda::DeviceCount();
  if (device.is_cpu() || device.index() < count) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("tensors are to come to ", device.ToString(),
                   ", but this process sees ", count, " GPUs"));
}

}  // namespace baton::rpc
