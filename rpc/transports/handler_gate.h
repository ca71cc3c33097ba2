// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>

#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/transport.h"

namespace baton::rpc {

// Lets calls to a MessageHandler through until Close, which waits for the calls
// under way. Close must not be called from within a call. Thread-safe.
class HandlerGate {
 public:
  void Open(MessageHandler* handler) { handler_ = handler; }

  // Runs `call(MessageHandler&)` unless the gate is closed.
  template <typename Call>
  void Pass(Call&& call) {
    ++inside_;  // first: either Close sees this call, or this call sees Close
    if (MessageHandler* const handler = handler_) call(*handler);
    if (--inside_ > 0 || handler_ != nullptr) return;
    MutexLock lock(mutex_);
    free_.NotifyAll();
  }

  void Close() {
    handler_ = nullptr;
    MutexLock lock(mutex_);
    while (inside_ > 0) free_.Wait(mutex_);
  }

 private:
  std::atomic<MessageHandler*> handler_{nullptr};
  std::atomic<int> inside_{0};
  Mutex mutex_;
  CondVar free_;  // there is no handler, and nothing inside
};

// Waits until all that was posted to this pool of one thread has run, because
// senders may be destroyed before the transport. Must not run on that thread.
inline void AwaitPosted(ThreadPool& reports) {
  const Promise<void> done;
  reports.Post([done] { done.Set(absl::OkStatus()); });
  done.future().Await(kNoLimit).IgnoreError();
}

}  // namespace baton::rpc
