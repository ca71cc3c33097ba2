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

// Identifies what a thread waits for: the address of a condition variable, a
// mutex or something else. It is never dereferenced.
using WaitKey = const void*;

struct WorldOptions {
  uint64_t seed = 0;
  // The probability that a thread which takes a mutex lets others run first.
  double preempt = 0;
  // The probability that a woken thread runs late, and the greatest delay.
  double late = 0;
  Nanos latest{0};
  bool trace = false;
};

// Simulates the clock and the threads of this process: posix.cc directs to it
// every POSIX call that waits, wakes, starts a thread or reads a clock. One
// thread runs at a time, until it waits; the seed determines which one is next,
// and when. Time passes only between steps, except for a little at each reading
// of the clock.
//
// Threads belong to groups, which stand for processes. A group can be stopped
// for a while, or killed, wherever its threads are; its memory stays. A new
// thread belongs to the group of the thread that starts it. Group 0 is the
// world's own.
//
// Exit ends the process without unwinding. Call all methods on the running
// thread.
class World {
 public:
  static World& Get();

  // Begins the simulation. The calling thread, the only one, becomes the first
  // of group 0.
  void Begin(const WorldOptions& options);
  bool active() const { return active_; }
  // Ends the process.
  [[noreturn]] void Exit(int code);
  // Prints what is wrong and exits.
  [[noreturn]] void Fail(const std::string& what);
  // Called by Fail before the process ends.
  std::function<void(const std::string& what)> on_failure;

  Nanos now() const { return Nanos(now_); }
  void Trace(const std::string& text);
  bool tracing() const { return options_.trace; }
  uint64_t steps() const { return steps_; }
  // Returns a hash of all that has happened; two runs of one seed have the
  // same.
  uint64_t digest() const { return digest_; }
  void Mix(uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001b3; }

  int NewGroup(const std::string& name);
  int group() const;  // of the calling thread
  const std::string& name(int group) const { return groups_[group].name; }
  bool alive(int group) const { return !groups_[group].killed; }
  bool stopped(int group) const { return groups_[group].stopped_until > now_; }
  void Stop(int group, Nanos length);
  void Kill(int group);
  // Starts a thread of that group.
  void Start(int group, std::function<void()> run);

  // Runs `task` after `delay`; later if the group is stopped then, never if it
  // was killed. Tasks must not wait or take a mutex.
  void After(int group, Nanos delay, Task task);
  void Sleep(Nanos length);
  // Waits until `key` is woken. Returns false after `length`; a negative one is
  // no limit.
  bool WaitFor(WaitKey key, Nanos length);
  void Wake(WaitKey key, bool all);

  // These are called by posix.cc.
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
  // Gives up the turn, and returns when the calling thread has it again.
  void Park();
  // Returns the next thread to run; runs the tasks that are due before.
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
