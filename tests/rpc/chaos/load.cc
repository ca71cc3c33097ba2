// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/chaos/load.h"

#include <iostream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::testing {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPause{2};
constexpr size_t kMostKept = 8;

// What other workers have passed on to this one.
struct Shelf {
  Mutex mutex;
  std::vector<RRef<Counter>> counters ABSL_GUARDED_BY(mutex);
};
Shelf& TheShelf() {
  static auto* shelf = new Shelf();
  return *shelf;
}

int Put(RRef<Counter> counter) {
  Shelf& shelf = TheShelf();
  RRef<Counter> dropped;
  MutexLock lock(shelf.mutex);
  shelf.counters.push_back(std::move(counter));
  if (shelf.counters.size() > kMostKept) {
    dropped = std::move(shelf.counters.front());
    shelf.counters.erase(shelf.counters.begin());
  }
  return static_cast<int>(shelf.counters.size());
}

// Calls what was put here last, wherever it lives.
Future<int> UseShelf(rpc::CallContext& call) {
  RRef<Counter> counter;
  {
    Shelf& shelf = TheShelf();
    MutexLock lock(shelf.mutex);
    if (!shelf.counters.empty()) counter = shelf.counters.back();
  }
  if (!counter.confirmed()) return ReadyFuture<int>(0);
  return counter.Async<&Counter::Add>(call, 1);
}

// Answers when the caller gives up or is lost.
Future<int> WaitForTheEnd(rpc::CallContext& call) {
  const Promise<int> end;
  call.OnCancel([end](const absl::Status& why) { end.Set(why); });
  return end.future();
}

// What a fault may do to a call; anything else is a bug.
bool IsFault(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status);
}

void WriteLine(const std::string& line) {
  std::ostringstream out;  // one write: lines of threads must not mix
  out << line << "\n";
  std::cout << out.str() << std::flush;
}

}  // namespace

void Load::FillRegistry(rpc::Registry& registry) {
  FillCounter(registry);
  registry.AddFunction<&Put>();
  registry.AddFunction<&UseShelf>();
  registry.AddFunction<&WaitForTheEnd>();
}

Load::Load(rpc::Agent& agent, uint64_t seed, milliseconds limit)
    : agent_(agent), limit_(limit) {
  for (const rpc::WorkerInfo& worker : agent.workers()) {
    if (worker.name != agent.self().name) others_.push_back(worker.name);
  }
  for (const std::string& name : others_) WaitAt(name);
  for (uint64_t i = 0; i < 2; ++i) {
    threads_.emplace_back([this, seed, i] { Run(2 * seed + i); });
  }
}

void Load::WaitAt(const std::string& name) {
  const rpc::CallOptions options{.timeout = kNoLimit,
                                 .cancel = cancel_.token()};
  agent_.Async<&WaitForTheEnd>(name, options)
      .OnReady([name](const absl::StatusOr<int>& result) {
        if (absl::IsCancelled(result.status())) return;
        const auto now = Clock::now().time_since_epoch();
        WriteLine(absl::StrCat("lost ", name, " ",
                               now / std::chrono::microseconds(1)));
      });
}

void Load::Run(uint64_t seed) {
  Worker worker{.random = std::mt19937_64(seed)};
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      ending_.WaitUntil(mutex_, Clock::now() + kPause);
    }
    const auto start = Clock::now();
    const absl::Status status = Step(worker);
    Note(status, {start, Clock::now()});
  }
}

std::string Load::RandomName(Worker& worker) const {
  return others_[worker.random() % others_.size()];
}

absl::Status Load::Step(Worker& worker) {
  const std::string name = RandomName(worker);
  std::vector<RRef<Counter>>& kept = worker.kept;
  const size_t one = kept.empty() ? 0 : worker.random() % kept.size();
  const rpc::CallOptions options{.timeout = milliseconds(30'000)};
  switch (worker.random() % 6) {
    case 0:
      return agent_.Async<&Sum>(name, options, 1, 2).Await().status();
    case 1: {
      if (kept.size() >= kMostKept) kept.erase(kept.begin());
      auto made = rpc::Create<Counter>(agent_, name, options, 1).Await();
      if (!made.ok()) return made.status();
      kept.push_back(*std::move(made));
      return absl::OkStatus();
    }
    case 2:
      if (kept.empty()) return absl::OkStatus();
      return agent_.Async<&Put>(name, options, kept[one]).Await().status();
    case 3:
      if (kept.empty()) return absl::OkStatus();
      return kept[one].Async<&Counter::Add>(options, 1).Await().status();
    case 4:
      if (!kept.empty()) kept.erase(kept.begin() + static_cast<long>(one));
      return absl::OkStatus();
    default:
      return agent_.Async<&UseShelf>(name, options).Await().status();
  }
}

void Load::Note(const absl::Status& status, const Call& call) {
  MutexLock lock(mutex_);
  ++report_.calls;
  if (call.end - call.begin > limit_) report_.slow.push_back(call);
  if (status.ok()) return;
  ++report_.errors;
  if (!IsFault(status)) report_.odd = status.ToString();
}

void Load::End() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    ending_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  cancel_.Cancel();
}

void Load::ClearShelf() {
  std::vector<RRef<Counter>> dropped;
  MutexLock lock(TheShelf().mutex);
  dropped.swap(TheShelf().counters);
}

Load::Report Load::report() const {
  MutexLock lock(mutex_);
  return report_;
}

}  // namespace baton::testing
