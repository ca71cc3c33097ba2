// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/loop_thread.h"

#include <memory>

#include "core/mutex.h"

namespace baton {
namespace {

thread_local LoopThread* of_this_thread = nullptr;

// No Promise, because Await would have the caller's pool start a spare thread:
// the caller computes, if on another thread.
struct Ended {
  Mutex mutex;
  CondVar changed;
  bool ended ABSL_GUARDED_BY(mutex) = false;
};

}  // namespace

LoopThread::Scope::Scope(LoopThread& loops)
    : before_(std::exchange(of_this_thread, &loops)) {}
LoopThread::Scope::~Scope() { of_this_thread = before_; }

LoopThread* LoopThread::OfThisThread() { return of_this_thread; }

// The pool's thread may still use `end` when the caller goes on.
void LoopThread::Run(absl::FunctionRef<void()> loop) {
  const auto end = std::make_shared<Ended>();
  thread_.Post([loop, end] {
    loop();
    const MutexLock lock(end->mutex);
    end->ended = true;
    end->changed.NotifyAll();
  });
  const MutexLock lock(end->mutex);
  while (!end->ended) end->changed.Wait(end->mutex);
}

}  // namespace baton
