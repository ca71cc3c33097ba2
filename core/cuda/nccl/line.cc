// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cuda/handles.h"
#include "core/cuda/nccl.h"
#include "core/cuda/nccl/library.h"
#include "core/cuda/release.h"
#include "core/cuda/status.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "nccl";
// Of the GPU's multiprocessors, while bytes pass: those of several lines must
// not fill it.
constexpr int kMostBlocks = 8;
// Bytes of which every kind of float makes no number.
constexpr int kNoNumber = 0xff;
// Whoever uses what was received waits for this stream: it is that of copies
// from the GPU of this index, which few processes have.
constexpr int kUsers = 13;

class Line final : public NcclLine {
 public:
  Line(const Nccl& nccl, bool sends, int device)
      : nccl_(nccl),
        sends_(sends),
        device_(device),
        users_(Stream::ForCopies(Device::Cuda(kUsers), Device::Cuda(device))) {}
  ~Line() override {
    Abort();
    std::deque<cudaEvent_t> running;
    {
      MutexLock lock(mutex_);
      running.swap(running_);
    }
    OnDevice(device_, [&] {
      for (cudaEvent_t event : running) cudaEventDestroy(event);
      if (home_event_ != nullptr) cudaEventDestroy(home_event_);
      if (stream_ != nullptr) cudaStreamDestroy(stream_);
    });
  }

  absl::Status Join(const ncclUniqueId& id);

  absl::StatusOr<bool> IsOpen() override {
    MutexLock lock(mutex_);
    return IsIdleLocked();
  }
  absl::Status Post(const Tensor& tensor) override {
    MutexLock lock(mutex_);
    waiting_.push_back(tensor);
    return AdvanceLocked();
  }
  absl::StatusOr<bool> HaveBeenGiven(uint64_t posts) override {
    MutexLock lock(mutex_);
    const absl::Status moved = AdvanceLocked();
    if (ended_ + running_.size() >= posts) return true;
    RETURN_IF_ERROR(moved);
    return false;
  }
  absl::StatusOr<bool> HaveEnded(uint64_t posts) override {
    MutexLock lock(mutex_);
    const absl::Status moved = AdvanceLocked();
    if (ended_ >= posts) return true;
    RETURN_IF_ERROR(moved);
    return false;
  }
  void Close() override { closed_ = true; }
  void Abort() override {
    ncclComm_t comm = nullptr;
    {
      MutexLock lock(comm_mutex_);
      comm = std::exchange(comm_, nullptr);
    }
    if (comm == nullptr) return;
    OnDevice(device_, [&] {
      nccl_.abort(comm);
      cudaStreamSynchronize(stream_);
    });
  }

 private:
  // A communicator that does not block takes one call after the other.
  absl::StatusOr<bool> IsIdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AdvanceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Throws.
  absl::Status TryToAdvanceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status GiveLocked(const Tensor& tensor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The event behind it.
  cudaEvent_t MarkLocked(const Tensor& tensor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAborted() const {
    MutexLock lock(comm_mutex_);
    return comm_ == nullptr;
  }

  const Nccl& nccl_;
  const bool sends_;
  const int device_;
  const Stream users_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t home_event_ = nullptr;
  std::atomic<bool> closed_{false};
  // Held across launches, which may have to wait for an abort; so an abort
  // takes the other one alone, under which NCCL is called and nothing waits.
  Mutex mutex_;
  mutable Mutex comm_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  ncclComm_t comm_ ABSL_GUARDED_BY(comm_mutex_) = nullptr;  // null: aborted
  std::deque<Tensor> waiting_ ABSL_GUARDED_BY(mutex_);
  // What the last call was for, until it has an event behind it.
  std::optional<Tensor> giving_ ABSL_GUARDED_BY(mutex_);
  std::deque<cudaEvent_t> running_ ABSL_GUARDED_BY(mutex_);
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::Status Line::Join(const ncclUniqueId& id) {
  return CatchErrors([&]() -> absl::Status {
    const DeviceScope scope(device_);
    Check(kOp, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    Check(kOp, cudaEventCreateWithFlags(&home_event_, cudaEventDisableTiming));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.minCTAs = 1;
    config.maxCTAs = kMostBlocks;
    MutexLock lock(comm_mutex_);
    return nccl_.StatusOf(
        "joining", nccl_.init(&comm_, 2, id, sends_ ? 0 : 1, &config), nullptr);
  });
}

absl::StatusOr<bool> Line::IsIdleLocked() {
  MutexLock lock(comm_mutex_);
  if (comm_ == nullptr) return absl::CancelledError("the line was aborted");
  ncclResult_t state = ncclSuccess;
  RETURN_IF_ERROR(
      nccl_.StatusOf("state", nccl_.get_async_error(comm_, &state), comm_));
  RETURN_IF_ERROR(
      nccl_.StatusOf(sends_ ? "sending" : "receiving", state, comm_));
  return state == ncclSuccess;
}

absl::Status Line::AdvanceLocked() {
  try {
    return TryToAdvanceLocked();
  } catch (...) {
    return StatusFromCurrentException();
  }
}

absl::Status Line::TryToAdvanceLocked() {
  const DeviceScope scope(device_);
  CollectLocked();
  if (closed_) return absl::CancelledError("the line is to be aborted");
  while (true) {
    ASSIGN_OR_RETURN(const bool idle, IsIdleLocked());
    if (!idle) break;
    if (giving_.has_value()) {
      running_.push_back(MarkLocked(*giving_));
      giving_.reset();
    }
    if (waiting_.empty()) break;
    RETURN_IF_ERROR(GiveLocked(waiting_.front()));
    giving_ = std::move(waiting_.front());
    waiting_.pop_front();
  }
  return absl::OkStatus();
}

absl::Status Line::GiveLocked(const Tensor& tensor) {
  void* const data = tensor.raw_data();
  // Where it was made it may have work left; what is sent may not wait for
  // that, as it might wait for the answer.
  if (!sends_) {
    const Stream& home = tensor.storage()->use()->home();
    Check(kOp, cudaEventRecord(home_event_, NativeStream(home)));
    Check(kOp, cudaStreamWaitEvent(stream_, home_event_, 0));
    Check(kOp, cudaMemsetAsync(data, kNoNumber, tensor.nbytes(), stream_));
  }
  const int peer = sends_ ? 1 : 0;
  MutexLock lock(comm_mutex_);
  if (comm_ == nullptr) return absl::CancelledError("the line was aborted");
  const ncclResult_t result =
      sends_
          ? nccl_.send(data, tensor.nbytes(), ncclUint8, peer, comm_, stream_)
          : nccl_.recv(data, tensor.nbytes(), ncclUint8, peer, comm_, stream_);
  return nccl_.StatusOf(sends_ ? "sending" : "receiving", result, comm_);
}

// By now the stream has been given what the call was for.
cudaEvent_t Line::MarkLocked(const Tensor& tensor) {
  cudaEvent_t event = nullptr;
  Check(kOp, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  try {
    Check(kOp, cudaEventRecord(event, stream_));
    if (sends_) return event;
    Check(kOp, cudaStreamWaitEvent(NativeStream(users_), event, 0));
    tensor.storage()->use()->Write(users_);
  } catch (...) {
    cudaEventDestroy(event);
    throw;
  }
  return event;
}

void Line::CollectLocked() {
  while (!running_.empty()) {
    const cudaError_t error = cudaEventQuery(running_.front());
    if (error == cudaErrorNotReady) return;
    Check(kOp, error);
    // What an abort has ended did not come.
    if (IsAborted()) return;
    cudaEventDestroy(running_.front());
    running_.pop_front();
    ++ended_;
  }
}

}  // namespace

absl::StatusOr<std::string> NewNcclId() {
  RETURN_IF_ERROR(OpenNccl().status());
  const Nccl& nccl = *OpenNccl();
  ncclUniqueId id{};
  RETURN_IF_ERROR(nccl.StatusOf("a new id", nccl.get_unique_id(&id), nullptr));
  return std::string(id.internal, sizeof(id.internal));
}

absl::StatusOr<std::shared_ptr<NcclLine>> JoinNccl(const std::string& id,
                                                   bool sends, int device) {
  RETURN_IF_ERROR(OpenNccl().status());
  ncclUniqueId unique{};
  if (id.size() != sizeof(unique.internal)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an id of NCCL of ", id.size(), " bytes"));
  }
  std::memcpy(unique.internal, id.data(), id.size());
  auto line = std::make_shared<Line>(*OpenNccl(), sends, device);
  RETURN_IF_ERROR(line->Join(unique));
  return line;
}

}  // namespace baton::cuda
