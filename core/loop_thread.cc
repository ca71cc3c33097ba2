// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/loop_thread.h"

#include <pthread.h>

#include <utility>

#include "core/spinning.h"

namespace baton {
namespace {

thread_local LoopThread* of_this_thread = nullptr;

}  // namespace

LoopThread::Scope::Scope(LoopThread& loops)
    : before_(std::exchange(of_this_thread, &loops)) {}
LoopThread::Scope::~Scope() { of_this_thread = before_; }

LoopThread* LoopThread::OfThisThread() { return of_this_thread; }

LoopThread::LoopThread(const std::string& name)
    : thread_([this, name] {
        pthread_setname_np(pthread_self(), name.c_str());
        RunLoops();
      }) {}

LoopThread::~LoopThread() {
  stopping_ = true;
  Set(nullptr);
  thread_.join();
}

void LoopThread::Set(const Loop* loop) {
  const MutexLock lock(mutex_);
  loop_ = loop;
  set_.NotifyAll();
}

void LoopThread::AwaitSet(absl::FunctionRef<bool()> ready) {
  Spinning& spinning = Spinning::OfThisThread();
  spinning.Restart();
  while (!ready()) {
    if (spinning.Wait()) continue;
    const MutexLock lock(mutex_);
    while (!ready()) set_.Wait(mutex_);
  }
  spinning.Came();
}

void LoopThread::RunLoops() {
  for (;;) {
    AwaitSet([&] { return loop_ != nullptr || stopping_; });
    if (stopping_) return;
    (*loop_.load())();
    Set(nullptr);
  }
}

// This does not use a Promise: Await would have the caller's pool start a spare
// thread, although the caller does compute, only on another thread.
void LoopThread::Run(Loop loop) {
  const MutexLock turn(turn_);
  Set(&loop);
  AwaitSet([&] { return loop_ == nullptr; });
}

}  // namespace baton
