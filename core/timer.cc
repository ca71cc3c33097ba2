// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/timer.h"

#include <pthread.h>

#include <algorithm>

namespace baton {

Timer::Timer(std::string name)
    : name_(std::move(name)), thread_([this] { Run(); }) {}

Timer::~Timer() { Stop(); }

void Timer::Stop() {
  std::map<std::pair<Clock::time_point, Id>, Task> dropped;
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
    when_.clear();
    thread.swap(thread_);
    wake_.NotifyAll();
  }
  if (thread.joinable()) thread.join();
}

Timer::Id Timer::At(Clock::time_point when, Task task) {
  MutexLock lock(mutex_);
  const Id id = next_++;
  if (stopping_) return id;
  const auto place = tasks_.emplace(std::pair(when, id), std::move(task)).first;
  when_.emplace(id, when);
  if (place == tasks_.begin()) wake_.NotifyOne();
  return id;
}

Timer::Id Timer::After(std::chrono::milliseconds delay, Task task) {
  constexpr std::chrono::milliseconds kNone(0);
  const Clock::time_point now = Clock::now();
  const auto left = std::chrono::floor<std::chrono::milliseconds>(
      Clock::time_point::max() - now);
  return At(
      delay > left ? Clock::time_point::max() : now + std::max(delay, kNone),
      std::move(task));
}

bool Timer::Cancel(Id id) {
  Task dropped;  // destroyed after the lock is released, because it may own
                 // anything
  {
    MutexLock lock(mutex_);
    auto found = when_.find(id);
    if (found == when_.end()) return false;
    auto task = tasks_.find(std::pair(found->second, id));
    dropped = std::move(task->second);
    tasks_.erase(task);
    when_.erase(found);
  }
  return true;
}

void Timer::Run() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  mutex_.Lock();
  while (!stopping_) {
    if (tasks_.empty()) {
      wake_.Wait(mutex_);
      continue;
    }
    const auto [when, id] = tasks_.begin()->first;
    if (when > Clock::now()) {
      wake_.WaitUntil(mutex_, when);
      continue;
    }
    Task task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    when_.erase(id);
    mutex_.Unlock();
    task();
    task = nullptr;
    mutex_.Lock();
  }
  mutex_.Unlock();
}

}  // namespace baton
