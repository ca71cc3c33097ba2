// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/poller.h"

#include <algorithm>
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
// The part of the shortest time that a kind of queries took lately for which
// one is left alone, and the times for which that is done.
constexpr double kLeftAlone = 0.875;
constexpr microseconds kLeast{1000}, kMost{50'000};

Clock::duration LeftAlone(const AnswerTimes* times) {
  if (times == nullptr || times->Least() < kLeast) return Clock::duration{0};
  return std::min<Clock::duration>(
      kMost,
      std::chrono::duration_cast<Clock::duration>(times->Least() * kLeftAlone));
}

}  // namespace

AnswerTimes::Duration AnswerTimes::Least() const {
  if (added_ < latest_.size()) return Duration{0};
  return *std::min_element(latest_.begin(), latest_.end());
}

void AnswerTimes::Add(Duration took) {
  latest_[added_++ % latest_.size()] = took;
}

struct Poller::State {
  struct Asked {
    Query query;
    std::shared_ptr<AnswerTimes> times;
    Clock::time_point since = Clock::now();
    Clock::duration left_alone{0};

    Clock::time_point due() const { return since + left_alone; }
    bool Answers() {
      if (!query()) return false;
      if (times != nullptr) times->Add(Clock::now() - since);
      return true;
    }
    // As if there had been an answer then; one that was left alone is worth no
    // busy thread.
    Clock::time_point AsAnAnswer() const {
      return left_alone > Clock::duration{0} ? due() - kBusy : since;
    }
  };

  Mutex mutex;
  CondVar changed;
  std::vector<Asked> added ABSL_GUARDED_BY(mutex);
  bool running ABSL_GUARDED_BY(mutex) = false;
  bool stopping ABSL_GUARDED_BY(mutex) = false;

  // Returns false if there is nothing left to do.
  bool Gather(std::vector<Asked>& queries) {
    MutexLock lock(mutex);
    for (Asked& asked : added) {
      asked.left_alone = LeftAlone(asked.times.get());
      queries.push_back(std::move(asked));
    }
    added.clear();
    running = !stopping && !queries.empty();
    return running;
  }
  void PauseUntil(Clock::time_point until) {
    MutexLock lock(mutex);
    while (added.empty() && !stopping && changed.WaitUntil(mutex, until)) {
    }
  }
  void Run() {
    std::vector<Asked> queries;
    auto last_answer = Clock::now();
    while (Gather(queries)) {
      const auto begin = Clock::now();
      auto due = Clock::time_point::max();
      const auto answered = std::erase_if(queries, [&](Asked& asked) {
        due = std::min(due, asked.due());
        if (asked.due() > begin) return false;
        last_answer = std::max(last_answer, asked.AsAnAnswer());
        return asked.Answers();
      });
      const auto now = Clock::now();
      if (answered > 0) last_answer = now;
      if (due > now) {
        PauseUntil(due);
      } else if (now - last_answer < kBusy) {
        std::this_thread::yield();
      } else {
        PauseUntil(now +
                   (now - last_answer < kAttentive ? kShortPause : kLongPause));
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

void Poller::Add(Query query, std::shared_ptr<AnswerTimes> times) {
  {
    MutexLock lock(state_->mutex);
    if (state_->stopping) return;
    state_->added.push_back(
        {.query = std::move(query), .times = std::move(times)});
    state_->changed.NotifyAll();
    if (std::exchange(state_->running, true)) return;
  }
  thread_.Post([state = state_] { state->Run(); });
}

}  // namespace baton::rpc
