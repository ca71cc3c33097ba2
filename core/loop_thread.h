// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/executor.h"

namespace baton {

// A thread that runs the parallel loops of other threads, one at a time.
// libgomp keeps a team of compute threads for each thread that has run a loop,
// and the teams take the cores from each other: threads that take turns at
// loops should share a LoopThread. Thread-safe.
class LoopThread {
 public:
  // `name` (at most 15 characters) is the thread's.
  explicit LoopThread(std::string name) : thread_(1, std::move(name)) {}

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
  ThreadPool thread_;
};

}  // namespace baton
