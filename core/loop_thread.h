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
// loops should share a LoopThread. Between loops that follow each other
// closely, it and the threads that wait for it spin (core/spinning.h).
// Thread-safe.
class LoopThread {
 public:
  // `name` (at most 15 characters) is the thread's.
  explicit LoopThread(const std::string& name);
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // While a Scope lives, ParallelFor runs this thread's loops of more than one
  // part on `loops`, which must outlive it.
  class Scope {
   public:
    explicit Scope(LoopThread& loops);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    LoopThread* const before_;
  };
  // Returns the LoopThread of the calling thread's innermost Scope; null
  // outside of any.
  static LoopThread* OfThisThread();

  // Calls loop(), which must not throw, on the thread, and waits for its end.
  void Run(absl::FunctionRef<void()> loop);

 private:
  using Loop = absl::FunctionRef<void()>;
  void RunLoops();
  // Sets the loop, or null, and wakes the threads that wait for the change.
  void Set(const Loop* loop);
  // Waits until ready() is true; Set makes it so.
  void AwaitSet(absl::FunctionRef<bool()> ready);

  Mutex turn_;  // held by the thread whose loop runs
  Mutex mutex_;
  CondVar set_;
  std::atomic<const Loop*> loop_ = nullptr;  // null again when it has ended
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace baton
