// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/transport.h"

namespace baton::rpc {

// Lets calls to a MessageHandler through until Close, which waits for the calls
// under way. Close must not be called from within a call. Thread-safe.
class HandlerGate {
 public:
  void Open(MessageHandler* handler) {
    MutexLock lock(mutex_);
    handler_ = handler;
  }

  // Runs `call(MessageHandler&)` unless the gate is closed.
  template <typename Call>
  void Pass(Call&& call) {
    MessageHandler* handler;
    {
      MutexLock lock(mutex_);
      if (handler_ == nullptr) return;
      handler = handler_;
      ++inside_;
    }
    call(*handler);
    MutexLock lock(mutex_);
    if (--inside_ == 0) free_.NotifyAll();
  }

  void Close() {
    MutexLock lock(mutex_);
    handler_ = nullptr;
    while (inside_ > 0) free_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar free_;
  MessageHandler* handler_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Waits until all that was posted to this pool of one thread has run, because
// senders may be destroyed before the transport. Must not run on that thread.
inline void AwaitPosted(ThreadPool& reports) {
  const Promise<void> done;
  reports.Post([done] { done.Set(absl::OkStatus()); });
  done.future().Await(kNoLimit).IgnoreError();
}

}  // namespace baton::rpc
