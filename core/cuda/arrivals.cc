// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/arrivals.h"

#include <atomic>
#include <set>
#include <utility>

#include "core/cuda/gates.h"
#include "core/cuda/handles.h"
#include "core/cuda/release.h"
#include "core/cuda/status.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

// Bytes of which every kind of float makes no number.
constexpr int kNoNumber = 0xff;

void FillWithNoNumbers(const Tensor& target) {
  const DeviceScope scope(target.device().index());
  cudaStream_t stream = nullptr;
  Check("arrival", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const absl::Status filled = CatchErrors([&] {
    Check("arrival", cudaMemsetAsync(target.raw_data(), kNoNumber,
                                     target.nbytes(), stream));
    Check("arrival", cudaStreamSynchronize(stream));
  });
  cudaStreamDestroy(stream);
  if (!filled.ok()) LogWarning("a tensor that was lost: ", filled.message());
}

// The gates of a stream open in order, whatever the order of what comes.
class Lane final : public ArrivalLane,
                   public std::enable_shared_from_this<Lane> {
 public:
  explicit Lane(const Stream& stream)
      : stream_(stream), gates_(stream.device().index()) {}

  std::unique_ptr<Arrival> Expect(const Tensor& target) override;

 private:
  class One;
  void Open(uint32_t gate) {
    MutexLock lock(mutex_);
    came_.insert(gate);
    while (came_.erase(next_) > 0) gates_.Open(next_++);
  }

  const Stream stream_;
  Mutex mutex_;
  Gates gates_;  // closed under closing_
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::set<uint32_t> came_ ABSL_GUARDED_BY(mutex_);
  // Held while the driver may wait for room in the stream, which only those
  // that open can make: they do without it.
  Mutex closing_;
};

class Lane::One final : public Arrival {
 public:
  One(std::shared_ptr<Lane> lane, Tensor target)
      : lane_(std::move(lane)), target_(std::move(target)) {}
  ~One() override { Came(); }

  void Close(uint32_t gate) {
    gate_ = gate;
    closed_ = true;
  }
  void Came() override {
    if (closed_.exchange(false)) lane_->Open(gate_);
  }
  void Lost() override {
    if (!closed_) return;
    CatchErrors([&] { FillWithNoNumbers(target_); }).IgnoreError();
    Came();
  }

 private:
  const std::shared_ptr<Lane> lane_;
  const Tensor target_;
  uint32_t gate_ = 0;
  std::atomic<bool> closed_{false};
};

std::unique_ptr<Arrival> Lane::Expect(const Tensor& target) {
  const DeviceScope scope(stream_.device().index());
  auto one = std::make_unique<One>(shared_from_this(), target);
  MutexLock lock(closing_);
  one->Close(gates_.Close(NativeStream(stream_)));
  target.storage()->use()->Write(stream_);
  return one;
}

}  // namespace

absl::AnyInvocable<bool()> WhenWritten(const Tensor& tensor) {
  const int device = tensor.device().index();
  const Stream stream = CurrentStream(tensor.device());
  tensor.storage()->use()->Read(stream);
  const DeviceScope scope(device);
  cudaEvent_t event = nullptr;
  Check("arrival", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const std::shared_ptr<void> owned(event, [device](void* made) {
    OnDevice(device, [&] { cudaEventDestroy(static_cast<cudaEvent_t>(made)); });
  });
  Check("arrival", cudaEventRecord(event, NativeStream(stream)));
  return [owned, device] {
    cudaError_t state = cudaSuccess;
    OnDevice(device, [&] {
      state = cudaEventQuery(static_cast<cudaEvent_t>(owned.get()));
    });
    return state != cudaErrorNotReady;
  };
}

std::shared_ptr<ArrivalLane> MakeArrivalLane(const Stream& stream) {
  return std::make_shared<Lane>(stream);
}

}  // namespace baton::cuda
