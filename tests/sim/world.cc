// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/world.h"

#include <errno.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "tests/sim/real.h"

namespace baton::sim {
namespace {

// The time until a woken thread runs, if nothing delays it.
constexpr int64_t kWakeUp = 20'000;

}  // namespace

struct World::Thread {
  Thread(int of_group, int its_number) : group(of_group), number(its_number) {
    sem_init(&turn, 0, 0);
  }

  const int group;
  const int number;
  sem_t turn;
  uint64_t token = 0;  // of the event that may wake it
  WaitKey waits_for = nullptr;
  bool timed_out = false;
  bool ended = false;
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
};

thread_local World::Thread* World::current = nullptr;

World& World::Get() {
  static World* const world = new World;  // outlives all threads
  return *world;
}

void World::Begin(const WorldOptions& options) {
  options_ = options;
  random_ = Rng(options.seed);
  NewGroup("world");
  current = new Thread(0, last_thread_++);
  active_ = true;
}

void World::Exit(int code) {
  std::fflush(stdout);
  std::fflush(stderr);
  _exit(code);
}

void World::Fail(const std::string& what) {
  Trace("WRONG: " + what);
  if (on_failure) on_failure(what);
  Exit(1);
}

void World::Trace(const std::string& text) {
  if (!options_.trace) return;
  const std::string line = absl::StrFormat(
      "%12.6f %s: %s\n", static_cast<double>(now_) * 1e-9,
      current == nullptr ? "" : groups_[current->group].name, text);
  std::fputs(line.c_str(), stdout);
}

int World::NewGroup(const std::string& name) {
  groups_.push_back({.name = name});
  return static_cast<int>(groups_.size()) - 1;
}

int World::group() const { return current->group; }

void World::Stop(int group, Nanos length) {
  groups_[group].stopped_until =
      std::max(groups_[group].stopped_until, now_ + length.count());
}

void World::Kill(int group) { groups_[group].killed = true; }

void World::Start(int group, std::function<void()> run) {
  auto* const body = new std::function<void()>(std::move(run));
  const auto start = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  auto* const thread = new Thread(group, last_thread_++);
  thread->start = start;
  thread->argument = body;
  pthread_t id;
  if (real::CreateThread(&id, nullptr, &Trampoline, thread) != 0) {
    Fail("no thread can be started");
  }
  pthread_detach(id);
  WakeThread(*thread);
}

int World::CreateThread(pthread_t* id, const pthread_attr_t* attributes,
                        void* (*start)(void*), void* argument) {
  auto* const thread = new Thread(current->group, last_thread_++);
  thread->start = start;
  thread->argument = argument;
  const int error = real::CreateThread(id, attributes, &Trampoline, thread);
  if (error != 0) return error;
  by_id_[*id] = thread;
  WakeThread(*thread);
  return 0;
}

void* World::Trampoline(void* thread) {
  current = static_cast<Thread*>(thread);
  while (sem_wait(&current->turn) != 0) {
  }
  void* const result = current->start(current->argument);
  World& world = Get();
  current->ended = true;
  world.Wake(current, true);
  Thread& next = world.PickNext();
  sem_post(&next.turn);
  return result;
}

void World::AwaitEnd(pthread_t id) {
  Thread* const thread = by_id_.at(id);
  while (!thread->ended) WaitFor(thread, Nanos(-1));
}

void World::Push(int64_t when, Event event) {
  events_.emplace(std::pair(when, ++seq_), std::move(event));
}

int64_t World::Lateness() {
  int64_t late = random_.Between(0, kWakeUp);
  if (random_.Chance(options_.late)) {
    late += random_.Between(0, options_.latest.count());
  }
  return late;
}

void World::WakeThread(Thread& thread) {
  Push(now_ + Lateness(),
       {.group = thread.group, .thread = &thread, .token = ++thread.token});
}

void World::After(int group, Nanos delay, Task task) {
  Push(now_ + delay.count(), {.group = group, .task = std::move(task)});
}

void World::Park() {
  if (in_task_) Fail("a task of the simulation waits");
  Thread& self = *current;
  Thread& next = PickNext();
  if (&next == &self) return;
  sem_post(&next.turn);
  while (sem_wait(&self.turn) != 0) {
  }
}

World::Thread& World::PickNext() {
  while (!events_.empty()) {
    auto node = events_.extract(events_.begin());
    Event& event = node.mapped();
    const Group& group = groups_[event.group];
    // Tasks of a killed group are leaked, because destroying what they hold
    // could take locks.
    if (group.killed) {
      if (event.task != nullptr) new Task(std::move(event.task));
      continue;
    }
    now_ = std::max(now_, node.key().first);
    if (group.stopped_until > now_) {
      node.key().first = group.stopped_until;
      events_.insert(std::move(node));
      continue;
    }
    if (Thread* const thread = Take(event)) return *thread;
  }
  Fail("nothing can run any more");
}

// Runs a task and returns null. Also returns null for a thread that has been
// woken otherwise.
World::Thread* World::Take(Event& event) {
  if (event.thread == nullptr) {
    ++steps_;
    Mix(static_cast<uint64_t>(now_));
    in_task_ = true;
    event.task();
    event.task = nullptr;
    in_task_ = false;
    return nullptr;
  }
  Thread& thread = *event.thread;
  if (event.token != thread.token) return nullptr;
  ++thread.token;
  ++steps_;
  Mix(static_cast<uint64_t>(now_) ^
      (static_cast<uint64_t>(thread.number) << 48));
  thread.timed_out = event.timeout;
  if (thread.waits_for != nullptr) {
    const auto place = waiting_.find(thread.waits_for);
    std::erase(place->second, &thread);
    if (place->second.empty()) waiting_.erase(place);
    thread.waits_for = nullptr;
  }
  return &thread;
}

bool World::WaitFor(WaitKey key, Nanos length) {
  Thread& self = *current;
  waiting_[key].push_back(&self);
  self.waits_for = key;
  ++self.token;
  if (length.count() >= 0) {
    Push(now_ + length.count() + Lateness(), {.group = self.group,
                                              .thread = &self,
                                              .token = self.token,
                                              .timeout = true});
  }
  Park();
  return !self.timed_out;
}

void World::Wake(WaitKey key, bool all) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  std::vector<Thread*> woken = std::move(found->second);
  waiting_.erase(found);
  std::erase_if(woken, [this](const Thread* thread) {
    return groups_[thread->group].killed;
  });
  if (woken.empty()) return;
  if (!all) {
    const size_t chosen = random_.Below(woken.size());
    std::swap(woken[chosen], woken.front());
    if (woken.size() > 1) {
      waiting_[key].assign(woken.begin() + 1, woken.end());
      woken.resize(1);
    }
  }
  for (Thread* thread : woken) {
    thread->waits_for = nullptr;
    WakeThread(*thread);
  }
}

void World::Sleep(Nanos length) {
  Thread& self = *current;
  ++self.token;
  Push(now_ + length.count() + Lateness(),
       {.group = self.group, .thread = &self, .token = self.token});
  Park();
}

void World::Lock(pthread_mutex_t* mutex) {
  if (!in_task_ && random_.Chance(options_.preempt)) Sleep(Nanos(0));
  while (pthread_mutex_trylock(mutex) == EBUSY) WaitFor(mutex, Nanos(-1));
}

void World::Unlock(pthread_mutex_t* mutex) {
  real::Unlock(mutex);
  Wake(mutex, true);  // a single one may be stopped
}

int World::WaitCondition(WaitKey condition, pthread_mutex_t* mutex,
                         Nanos length) {
  Unlock(mutex);
  const bool woken = WaitFor(condition, length);
  Lock(mutex);
  return woken ? 0 : ETIMEDOUT;
}

}  // namespace baton::sim
