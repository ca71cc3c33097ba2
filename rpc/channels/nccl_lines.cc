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

using Lines = std::vector<std::shared_ptr<cuda::NcclLine>>;

// All at once: the first to wait for an idle GPU would wait for the kernels of
// the others. What is used stays until the end.
Future<void> AbortAll(Lines lines, std::vector<Tensor> used) {
  struct Held {
    std::vector<Tensor> used;
    Promise<void> aborted;
    ~Held() { aborted.Set(absl::OkStatus()); }
  };
  const auto held = std::make_shared<Held>();
  held->used = std::move(used);
  for (const auto& line : lines) line->Close();
  for (auto& line : lines) {
    Beside("baton-nccl-end", [line = std::move(line), held] { line->Abort(); });
  }
  return held->aborted.future();
}

// On a thread of its own: other sends wait until the lines let go, or for
// `patience`; `then` comes last.
void AbortAlone(const std::shared_ptr<NcclTraffic>& traffic, Lines lines,
                std::vector<Tensor> used, milliseconds patience, Task then) {
  Beside("baton-nccl-lose", [traffic, hold = traffic->Hold(),
                             lines = std::move(lines), used = std::move(used),
                             patience, then = std::move(then)]() mutable {
    if (!traffic->AwaitQuiet(patience))
      LogWarning("NCCL lets go of a lost worker while others are sent to");
    if (!AbortAll(std::move(lines), std::move(used)).Await(patience).ok())
      LogWarning("NCCL does not let go of a lost worker's tensors");
    hold = nullptr;
    std::move(then)();
  });
}

}  // namespace

NcclLines::NcclLines(std::shared_ptr<NcclTraffic> traffic,
                     std::shared_ptr<NcclSends> sends,
                     std::shared_ptr<NcclReceipts> receipts,
                     milliseconds patience)
    : traffic_(std::move(traffic)),
      sends_(std::move(sends)),
      receipts_(std::move(receipts)),
      patience_(patience) {}

bool NcclLines::Add(std::shared_ptr<cuda::NcclLine> line) {
  MutexLock lock(mutex_);
  if (aborted_) return false;
  lines_.push_back(std::move(line));
  return true;
}

void NcclLines::Keep(const Tensor& tensor) {
  MutexLock lock(mutex_);
  kept_.push_back(tensor);
}

void NcclLines::Abort() {
  std::vector<Tensor> used;
  Lines lines;
  {
    MutexLock lock(mutex_);
    if (std::exchange(aborted_, true)) return;
    used.swap(kept_);
    lines.swap(lines_);
  }
  for (const Tensor& tensor : sends_->under_way()) used.push_back(tensor);
  for (const Tensor& tensor : receipts_->under_way()) used.push_back(tensor);
  sends_->Forsake();
  AbortAlone(traffic_, std::move(lines), std::move(used), patience_,
             [sends = sends_, receipts = receipts_] {
               sends->GiveUp();
               receipts->GiveUp();
             });
}

void AbortLine(std::shared_ptr<cuda::NcclLine> line,
               const std::shared_ptr<NcclTraffic>& traffic,
               milliseconds patience) {
  AbortAlone(traffic, {std::move(line)}, {}, patience, [] {});
}

bool AwaitAborts(milliseconds limit) { return Aborts::Get().Await(limit); }

}  // namespace baton::rpc
