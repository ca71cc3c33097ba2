// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "core/cuda/ipc.h"
#include "core/cuda/memory.h"
#include "core/status.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/ipc_gpu.h"

namespace baton::rpc {
namespace {

// This process uses these streams for no other copies, unless it has many GPUs:
// the stream for copies from the GPU of this index, and those after it.
constexpr int kFirstCopies = 10;

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
  bool HasEnded(const std::shared_ptr<void>& event) override {
    return cuda::SharedEventHasEnded(event.get(), own_.index());
  }
  absl::StatusOr<Tensor> Make(const TensorSpec& spec) override {
    return CatchErrors([&]() -> absl::StatusOr<Tensor> {
      const StreamScope scope(copies_[next_++ % copies_.size()]);
      return DenseView(Storage::Allocate(spec.bytes, own_), spec);
    });
  }
  absl::StatusOr<Poller::Query> Copy(const Tensor& target,
                                     const void* source) override {
    return CatchErrors([&]() -> absl::StatusOr<Poller::Query> {
      return cuda::CopyFromSegment(target, source,
                                   target.storage()->use()->home());
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
  const Device own_;
  // For two copies at once, from the GPUs of two peers.
  const std::array<Stream, 2> copies_{
      Stream::ForCopies(Device::Cuda(kFirstCopies), own_),
      Stream::ForCopies(Device::Cuda(kFirstCopies + 1), own_)};
  std::atomic<size_t> next_{0};
};

}  // namespace

uint64_t SumOf(const Tensor& tensor) {
  uint64_t sum = 0xcbf29ce484222325ULL;
  const auto* bytes = static_cast<const uint8_t*>(tensor.raw_data());
  for (size_t i = 0; i < tensor.nbytes(); ++i)
    sum = (sum ^ bytes[i]) * 0x100000001b3ULL;
  return sum;
}

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
