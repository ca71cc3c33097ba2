// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "rpc/channels/ipc_gpu.h"

namespace baton::rpc {

// GPUs whose memory is the CPU's, of several workers of one machine: tensors
// say that they are on a GPU, and must not be computed with. Thread-safe.
class FakeMachine {
 public:
  // While true, what is recorded has not ended yet.
  std::atomic<bool> busy{false};
  // What is read elsewhere is something else than what was written.
  std::atomic<bool> broken{false};
  std::atomic<int> opened{0};  // segments
  std::atomic<int> shared{0};
  // Called before a segment is closed or no longer shared, which on a GPU waits
  // for what its streams have been given.
  std::function<void()> before_release = [] {};

  struct Event {
    std::atomic<bool> recorded{false};
  };

 private:
  friend class FakeGpu;
  Mutex mutex_;
  int next_handle_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::weak_ptr<void>> by_handle_ ABSL_GUARDED_BY(mutex_);
};

class FakeGpu final : public IpcGpu {
 public:
  static constexpr size_t kSegmentBytes = size_t{64} << 10;

  FakeGpu(std::shared_ptr<FakeMachine> machine, int own, int count = 2)
      : machine_(std::move(machine)), own_(own), count_(count) {}

  // f32 in a segment of its own, from a multiple of 512 bytes on; 0, 1, 2...
  Tensor Numbers(int64_t count, int gpu = 0, size_t offset = 512);

  // What was uploaded last, on the CPU.
  Tensor proof() const { return proof_; }

  int count() const override { return count_; }
  int own() const override { return own_; }
  absl::StatusOr<std::string> Uuid() override;
  std::optional<Place> Find(const Tensor& tensor) override;
  absl::StatusOr<std::string> Share(const Place& place) override;
  void Unshare(const Place& place) override;
  absl::StatusOr<Event> MakeEvent(int gpu) override;
  absl::Status Record(const Event& event, const Tensor& tensor) override;
  absl::StatusOr<std::shared_ptr<void>> OpenSegment(
      const std::string& handle) override;
  absl::StatusOr<std::shared_ptr<void>> OpenEvent(
      const std::string& handle) override;
  bool HasEnded(const std::shared_ptr<void>& event) override;
  absl::StatusOr<Tensor> Make(const TensorSpec& spec) override;
  absl::StatusOr<Poller::Query> Copy(const Tensor& target,
                                     const void* source) override;
  absl::StatusOr<Tensor> Upload(const Tensor& host, int gpu) override;
  absl::StatusOr<Tensor> Download(const Tensor& tensor) override;

 private:
  using Bytes = std::vector<char>;
  std::shared_ptr<Storage> NewBlock(int gpu, size_t offset, size_t bytes);
  // Of a segment or of an event.
  enum class Kind { kSegment, kEvent };
  std::string NewHandle(Kind kind, const std::shared_ptr<void>& of);
  std::shared_ptr<void> ByHandle(Kind kind, const std::string& handle);

  const std::shared_ptr<FakeMachine> machine_;
  const int own_, count_;
  Tensor proof_;
  Mutex mutex_;
  std::map<void*, std::shared_ptr<Bytes>> segments_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
