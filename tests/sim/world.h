// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/executor.h"
#include "tests/sim/rng.h"

namespace baton::sim {

using Nanos = std::chrono::nanoseconds;

// What a thread waits for: the address of a condition variable, of a mutex, or
// of whatever else. Never looked into.
using WaitKey = const void*;

struct WorldOptions {
  uint64_t seed = 0;
  // That a thread which takes a mutex lets others run first.
  double preempt = 0;
  // That a thread which is woken runs late, and by how much at most.
  double late = 0;
  Nanos latest{0};
  bool trace = false;
};

// The clock and the threads of this process, simulated: posix.cc gives every
// call of POSIX that waits, wakes, starts a thread or reads a clock to it. One
// thread runs at a time, until it waits; which one is next, and when, follows
// from the seed alone. Time passes between steps, not in them, but for a little
// with every look at the clock.
//
// Threads belong to groups, which are what processes are elsewhere: a group is
// stopped for a while, or killed, wherever its threads are, and its memory
// stays. Threads inherit the group of who starts them; group 0 is the world's
// own.
//
// The process ends without unwinding: by Exit. Called by the thread that runs.
class World {
 public:
  static World& Get();

  // The calling thread, which is the only one, is the first of group 0.
  void Begin(const WorldOptions& options);
  bool active() const { return active_; }
  // Ends the process.
  [[noreturn]] void Exit(int code);
  // As Exit, with a line of what is wrong.
  [[noreturn]] void Fail(const std::string& what);
  // Called by Fail before the process ends.
  std::function<void(const std::string& what)> on_failure;

  Nanos now() const { return Nanos(now_); }
  void Trace(const std::string& text);
  bool tracing() const { return options_.trace; }
  uint64_t steps() const { return steps_; }
  // Of all that has happened: equal for two runs of one seed.
  uint64_t digest() const { return digest_; }
  void Mix(uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001b3; }

  int NewGroup(const std::string& name);
  int group() const;  // of the calling thread
  const std::string& name(int group) const { return groups_[group].name; }
  bool alive(int group) const { return !groups_[group].killed; }
  bool stopped(int group) const { return groups_[group].stopped_until > now_; }
  void Stop(int group, Nanos length);
  void Kill(int group);
  // A thread of that group.
  void Start(int group, std::function<void()> run);

  // Runs `task` then, unless the group has been killed; later, if it is
  // stopped. Tasks wait for nothing and take no mutex.
  void After(int group, Nanos delay, Task task);
  void Sleep(Nanos length);
  // Until `key` is woken; false after `length`, unless that is negative.
  bool WaitFor(WaitKey key, Nanos length);
  void Wake(WaitKey key, bool all);

  // For posix.cc.
  int CreateThread(pthread_t* id, const pthread_attr_t* attributes,
                   void* (*start)(void*), void* argument);
  void AwaitEnd(pthread_t id);
  void Lock(pthread_mutex_t* mutex);
  void Unlock(pthread_mutex_t* mutex);
  int WaitCondition(WaitKey condition, pthread_mutex_t* mutex, Nanos length);
  Nanos ReadClock() { return Nanos(now_ += kClockStep); }

 private:
  static constexpr int64_t kClockStep = 100;
  struct Thread;
  struct Event {
    int group = 0;
    Thread* thread = nullptr;  // null: a task
    uint64_t token = 0;
    bool timeout = false;
    Task task = nullptr;
  };
  struct Group {
    std::string name;
    int64_t stopped_until = 0;
    bool killed = false;
  };

  static thread_local Thread* current;

  static void* Trampoline(void* thread);
  void Push(int64_t when, Event event);
  void WakeThread(Thread& thread);
  // Gives up the turn; returns when it is the calling thread's again.
  void Park();
  // The next thread to run; does the tasks that are due before.
  Thread& PickNext();
  Thread* Take(Event& event);
  int64_t Lateness();

  bool active_ = false;
  WorldOptions options_;
  Rng random_;
  int64_t now_ = 0;
  uint64_t seq_ = 0;
  uint64_t steps_ = 0;
  uint64_t digest_ = 0xcbf29ce484222325;
  bool in_task_ = false;
  int last_thread_ = 0;
  std::deque<Group> groups_;
  std::map<std::pair<int64_t, uint64_t>, Event> events_;
  std::unordered_map<WaitKey, std::vector<Thread*>> waiting_;
  std::unordered_map<pthread_t, Thread*> by_id_;
};

}  // namespace baton::sim
