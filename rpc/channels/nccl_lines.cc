// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl_lines.h"

#include <pthread.h>

#include <thread>
#include <utility>

#include "core/executor.h"
#include "core/future.h"
#include "core/log.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

// Threads of this process that abort, or wait for one that does.
class Aborts {
 public:
  static Aborts& Get() {
    static auto* const aborts = new Aborts;
    return *aborts;
  }
  void Add(int count) {
    MutexLock lock(mutex_);
    running_ += count;
    if (running_ == 0) none_.NotifyAll();
  }
  bool Await(milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (running_ > 0 && none_.WaitUntil(mutex_, deadline)) {
    }
    return running_ == 0;
  }

 private:
  Mutex mutex_;
  CondVar none_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

// It may never end, and nobody waits for it where a process ends.
void Beside(const char* name, Task task) {
  Aborts::Get().Add(1);
  std::thread([name, task = std::move(task)]() mutable {
    pthread_setname_np(pthread_self(), name);
    std::move(task)();
    task = nullptr;
    Aborts::Get().Add(-1);
  }).detach();
}

}  // namespace

NcclLines::NcclLines(std::shared_ptr<cuda::NcclLine> out,
                     std::shared_ptr<cuda::NcclLine> in,
                     std::shared_ptr<NcclSends> sends,
                     std::shared_ptr<NcclReceipts> receipts,
                     milliseconds patience)
    : out_(std::move(out)),
      in_(std::move(in)),
      sends_(std::move(sends)),
      receipts_(std::move(receipts)),
      patience_(patience) {}

void NcclLines::Keep(const Tensor& tensor) {
  MutexLock lock(mutex_);
  kept_.push_back(tensor);
}

void NcclLines::Abort() {
  std::vector<Tensor> used;
  {
    MutexLock lock(mutex_);
    if (std::exchange(aborted_, true)) return;
    used.swap(kept_);
  }
  for (const Tensor& tensor : sends_->under_way()) used.push_back(tensor);
  for (const Tensor& tensor : receipts_->under_way()) used.push_back(tensor);
  const Promise<void> aborted;
  Beside("baton-nccl-end",
         [out = out_, in = in_, used = std::move(used), aborted]() mutable {
           out->Abort();
           in->Abort();
           used.clear();
           aborted.Set(absl::OkStatus());
         });
  Beside("baton-nccl-lose", [sends = sends_, receipts = receipts_,
                             future = aborted.future(), patience = patience_] {
    if (!future.Await(patience).ok())
      LogWarning("NCCL does not let go of a lost worker's tensors");
    sends->GiveUp();
    receipts->GiveUp();
  });
}

void AbortLine(std::shared_ptr<cuda::NcclLine> line) {
  if (line == nullptr) return;
  Beside("baton-nccl-end", [line = std::move(line)] { line->Abort(); });
}

bool AwaitAborts(milliseconds limit) { return Aborts::Get().Await(limit); }

}  // namespace baton::rpc
