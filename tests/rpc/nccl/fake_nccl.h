// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/mutex.h"
#include "rpc/channels/nccl_gpu.h"

namespace baton::rpc {

// A network of lines between workers whose GPUs' memory is the CPU's: the n-th
// post of one end is the n-th of the other. It counts what would keep real GPUs
// waiting for each other. Thread-safe.
class FakeFabric {
 public:
  std::atomic<bool> closed{false};    // lines do not open
  std::atomic<bool> stuck{false};     // what was posted does not end
  std::atomic<bool> broken{false};    // other bytes come than were sent
  std::atomic<bool> failing{false};   // what was posted fails
  std::atomic<bool> refusing{false};  // nobody may join
  std::atomic<bool> clinging{false};  // aborts do not end
  std::atomic<int> lines{0};          // joined, not aborted
  std::atomic<int> posts{0};          // two of each tensor
  std::atomic<int> questions{0};      // whether posts were given, or have ended
  std::atomic<bool> busy{false};      // GPUs are given nothing
  std::atomic<bool> hanging{false};   // launches do not return

  // Receives but the first that were given to a GPU before their sends were.
  std::atomic<int> early_receives{0};
  // Lines that were joined, or first used, while something that the same worker
  // had sent was under way.
  std::atomic<int> early_openings{0};

  // Tensors are being written from now on, until the flag is set.
  std::shared_ptr<std::atomic<bool>> StartWriting();
  // And from now on they have been.
  void StopWriting();

 private:
  friend class FakeNccl;
  struct Wire;
  class Line;
  static constexpr size_t kMostWorkers = 8;
  std::atomic<int> sending_[kMostWorkers] = {};  // by their GPU
  Mutex mutex_;
  int next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<Wire>> wires_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<std::atomic<bool>> written_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<std::atomic<bool>>(true);
};

class FakeNccl final : public NcclGpu {
 public:
  FakeNccl(std::shared_ptr<FakeFabric> fabric, int own)
      : fabric_(std::move(fabric)), own_(own) {}

  absl::StatusOr<std::string> version = std::string("2.28.9");
  std::function<void()> making;  // runs once, while memory is made

  absl::StatusOr<std::string> Version() override { return version; }
  absl::StatusOr<std::string> NewId() override;
  absl::StatusOr<std::shared_ptr<cuda::NcclLine>> Join(const std::string& id,
                                                       bool sends) override;
  absl::StatusOr<Poller::Question> WhenWritten(const Tensor& tensor) override;
  absl::StatusOr<Tensor> Make(const TensorSpec& spec) override;

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  const int own_;
};

}  // namespace baton::rpc
