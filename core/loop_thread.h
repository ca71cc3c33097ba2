// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "core/mutex.h"

namespace baton {

// A thread that runs the parallel loops of other threads, one at a time.
// libgomp keeps a team of compute threads for each thread that has run a loop,
// and the teams take the cores from each other: threads that take turns at
// loops should share a LoopThread. Where many loops follow each other, it and
// whoever waits for it spin (core/spinning.h) for the short time between them.
// Thread-safe.
class LoopThread {
 public:
  // `name` (at most 15 characters) is the thread's.
  explicit LoopThread(const std::string& name);
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // While it lives, ParallelFor runs this thread's loops of more than one part
  // on `loops`, which must outlive it.
  class Scope {
   public:
    explicit Scope(LoopThread& loops);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    LoopThread* const before_;
  };
  // The one of this thread's innermost Scope; null outside of any.
  static LoopThread* OfThisThread();

  // Calls loop(), which must not throw, on the thread, and waits for its end.
  void Run(absl::FunctionRef<void()> loop);

 private:
  using Loop = absl::FunctionRef<void()>;
  void RunLoops();
  // Sets the loop, or null, and wakes whoever waits for that.
  void Set(const Loop* loop);
  // Returns when ready() is true, which a Set makes it.
  void AwaitSet(absl::FunctionRef<bool()> ready);

  Mutex turn_;  // held by the one whose loop it is
  Mutex mutex_;
  CondVar set_;
  std::atomic<const Loop*> loop_ = nullptr;  // null again when it has ended
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace baton
