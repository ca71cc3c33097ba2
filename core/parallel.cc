// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "core/loop_thread.h"

namespace baton {
namespace {

// The state that the threads of one loop share. libgomp's fork and join already
// order memory; the two atomics make this visible to ThreadSanitizer, which
// cannot instrument libgomp.
struct Loop {
  int64_t count;
  absl::FunctionRef<void(int64_t, int64_t)> body;
  std::atomic<bool> started{false};
  std::atomic<int> finished{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error{};
};

void RunPart(Loop& loop, int part, int parts) {
  const int64_t base = loop.count / parts;
  const int64_t rest = loop.count % parts;
  const int64_t begin = base * part + std::min<int64_t>(part, rest);
  const int64_t end = begin + base + (part < rest ? 1 : 0);
  if (begin == end) return;
  try {
    loop.body(begin, end);
  } catch (...) {
    if (!loop.failed.exchange(true)) loop.error = std::current_exception();
  }
}

void RunMember(Loop& loop, int member, int parts) {
  (void)loop.started.load(std::memory_order_acquire);
  if (member < parts) RunPart(loop, member, parts);
  loop.finished.fetch_add(1, std::memory_order_acq_rel);
}

// The team has the same size in every loop, and threads without a part return
// at once, because libgomp ends the threads that a smaller team leaves over and
// starts new ones for the next larger team.
// This is not instrumented, because the compiler passes `loop` to the team
// through memory that only libgomp orders.
__attribute__((no_sanitize("thread"))) void RunTeam(
    Loop& loop, [[maybe_unused]] int threads, int parts) {
#pragma omp parallel num_threads(threads)
  RunMember(loop, omp_get_thread_num(), std::min(parts, omp_get_num_threads()));
}

}  // namespace

void SetComputeThreads(int threads) {
  omp_set_num_threads(std::max(threads, 1));
}

int ComputeThreads() { return omp_get_max_threads(); }

void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  const int threads = ComputeThreads();
  const auto parts = static_cast<int>(
      std::min<int64_t>(count / std::max<int64_t>(grain, 1), threads));
  // A nested loop runs on the thread that reaches it.
  if (parts <= 1 || omp_in_parallel()) {
    body(0, count);
    return;
  }
  Loop loop{.count = count, .body = body};
  loop.started.store(true, std::memory_order_release);
  if (LoopThread* const loops = LoopThread::OfThisThread(); loops != nullptr) {
    loops->Run([&] { RunTeam(loop, threads, parts); });
  } else {
    RunTeam(loop, threads, parts);
  }
  (void)loop.finished.load(std::memory_order_acquire);
  if (loop.error) std::rethrow_exception(loop.error);
}

}  // namespace baton
