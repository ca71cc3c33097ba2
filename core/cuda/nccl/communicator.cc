// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/nccl/communicator.h"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "core/cuda/release.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

// An abort ends a call that waits for other members. Any other call ends by
// itself well before this time, and must, because an abort frees what it uses.
constexpr std::chrono::seconds kCallPatience{1};
// An abort that takes longer is waiting for a graph that still exists.
constexpr std::chrono::seconds kAbortPatience{5}, kExitPatience{2};

// The aborts in progress in this process.
class Aborts {
 public:
  static Aborts& Get() {
    static auto* const aborts = new Aborts;
    return *aborts;
  }
  // Returns false once the process ends.
  bool Begin() {
    const MutexLock lock(mutex_);
    if (!ended_) ++running_;
    return !ended_;
  }
  void End() {
    const MutexLock lock(mutex_);
    --running_;
    changed_.NotifyAll();
  }
  void EndAll() {
    const auto until = std::chrono::steady_clock::now() + kExitPatience;
    const MutexLock lock(mutex_);
    ended_ = true;
    while (running_ > 0 && changed_.WaitUntil(mutex_, until)) {
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

// Exit handlers run in the reverse order of their registration: this one runs
// before those of NCCL and CUDA, which were registered when the communicator
// was made.
Communicator::Communicator(const Nccl& nccl, int device, ncclComm_t comm)
    : nccl_(nccl), device_(device), comm_(comm) {
  [[maybe_unused]] static const int registered =
      std::atexit([] { Aborts::Get().EndAll(); });
}

absl::Status Communicator::State() const {
  MutexLock lock(mutex_);
  if (comm_ == nullptr) return Aborted();
  ncclResult_t state = ncclSuccess;
  RETURN_IF_ERROR(
      nccl_.StatusOf("state", nccl_.get_async_error(comm_, &state), nullptr));
  return nccl_.StatusOf("a collective", state, nullptr);
}

void Communicator::Abort(const std::shared_ptr<Communicator>& self) {
  ncclComm_t comm = nullptr;
  {
    MutexLock lock(self->mutex_);
    comm = std::exchange(self->comm_, nullptr);
    if (comm == nullptr) return;
  }
  if (!Aborts::Get().Begin()) {
    self->aborted_.Set(absl::OkStatus());
    return;
  }
  std::thread([self, comm] {
    self->AwaitCall();
    OnDevice(self->device_, [&] { self->nccl_.abort(comm); });
    self->aborted_.Set(absl::OkStatus());
    Aborts::Get().End();
  }).detach();
}

void Communicator::AwaitAbort() const {
  if (recorded_.use_count() > 1) return;
  aborted_.future().Await(kAbortPatience).IgnoreError();
}

absl::Status Communicator::Aborted() {
  return absl::CancelledError("the communicator was aborted");
}

void Communicator::AwaitCall() {
  const auto until = std::chrono::steady_clock::now() + kCallPatience;
  MutexLock lock(mutex_);
  while (called_ && changed_.WaitUntil(mutex_, until)) {
  }
}

}  // namespace baton::cuda
