// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/poller.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace baton::rpc {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// For so long after an answer, the next one is worth a busy thread.
constexpr microseconds kBusy{200}, kAttentive{5000};
constexpr microseconds kShortPause{20}, kLongPause{200};

}  // namespace

struct Poller::State {
  Mutex mutex;
  CondVar changed;
  std::vector<Query> added ABSL_GUARDED_BY(mutex);
  bool running ABSL_GUARDED_BY(mutex) = false;
  bool stopping ABSL_GUARDED_BY(mutex) = false;

  // Returns false if there is nothing left to do.
  bool Gather(std::vector<Query>& queries) {
    MutexLock lock(mutex);
    for (Query& query : added) queries.push_back(std::move(query));
    added.clear();
    running = !stopping && !queries.empty();
    return running;
  }
  void Pause(microseconds time) {
    const auto until = Clock::now() + time;
    MutexLock lock(mutex);
    while (added.empty() && !stopping && changed.WaitUntil(mutex, until)) {
    }
  }
  void Run() {
    std::vector<Query> queries;
    auto last_answer = Clock::now();
    while (true) {
      const size_t before = queries.size();
      if (!Gather(queries)) return;
      const bool more = queries.size() > before;
      const bool answered =
          std::erase_if(queries, [](Query& query) { return query(); }) > 0;
      const auto now = Clock::now();
      if (more || answered) last_answer = now;
      if (now - last_answer < kBusy) {
        std::this_thread::yield();
      } else {
        Pause(now - last_answer < kAttentive ? kShortPause : kLongPause);
      }
    }
  }
};

Poller::Poller(const char* name)
    : state_(std::make_shared<State>()), thread_(1, name) {}

Poller::~Poller() {
  MutexLock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.NotifyAll();
}

void Poller::Add(Query query) {
  {
    MutexLock lock(state_->mutex);
    if (state_->stopping) return;
    state_->added.push_back(std::move(query));
    state_->changed.NotifyAll();
    if (std::exchange(state_->running, true)) return;
  }
  thread_.Post([state = state_] { state->Run(); });
}

}  // namespace baton::rpc
