// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <nccl.h>

#include <memory>

#include "absl/status/status.h"
#include "core/cuda/nccl/library.h"
#include "core/future.h"
#include "core/mutex.h"

namespace baton::cuda {

// A communicator of NCCL. One call at a time uses it, until it is aborted.
// Process exit waits a while for aborts, because NCCL's and CUDA's exit
// handlers free what they use; later aborts do nothing. Thread-safe.
class Communicator {
 public:
  Communicator(const Nccl& nccl, int device, ncclComm_t comm);

  // Calls fn(ncclComm_t), which returns an ncclResult_t. Returns Cancelled if
  // the communicator was aborted before or during the call.
  template <typename Fn>
  absl::Status Call(const char* what, const Fn& fn) {
    ncclComm_t comm = nullptr;
    {
      MutexLock lock(mutex_);
      if (comm_ == nullptr) return Aborted();
      comm = comm_;
      called_ = true;
    }
    const ncclResult_t result = fn(comm);
    MutexLock lock(mutex_);
    called_ = false;
    changed_.NotifyAll();
    if (comm_ == nullptr) return Aborted();
    return nccl_.StatusOf(what, result, nullptr);
  }
  // Returns the error that other members or this GPU's own kernels have met.
  absl::Status State() const;
  // Aborts the communicator on a thread of its own; repeated calls do nothing.
  static void Abort(const std::shared_ptr<Communicator>& self);
  // Waits a while for the abort, unless a graph still holds recorded().
  void AwaitAbort() const;
  // Graphs that replay calls of this communicator must hold this, because NCCL
  // frees the communicator only after them.
  const std::shared_ptr<const bool>& recorded() const { return recorded_; }

 private:
  static absl::Status Aborted();
  void AwaitCall();

  const Nccl& nccl_;
  const int device_;
  const std::shared_ptr<const bool> recorded_ = std::make_shared<bool>(true);
  const Promise<void> aborted_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool called_ ABSL_GUARDED_BY(mutex_) = false;
  ncclComm_t comm_ ABSL_GUARDED_BY(mutex_);  // null once aborted
};

}  // namespace baton::cuda
