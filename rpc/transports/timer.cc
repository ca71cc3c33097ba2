// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/timer.h"

#include <pthread.h>

#include <utility>

namespace baton::rpc {

Timer::Timer() : thread_([this] { Run(); }) {}

Timer::~Timer() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

void Timer::After(std::chrono::milliseconds delay, Task task) {
  MutexLock lock(mutex_);
  tasks_.emplace(Clock::now() + delay, std::move(task));
  wake_.NotifyAll();
}

void Timer::Run() {
  pthread_setname_np(pthread_self(), "baton-timer");
  mutex_.Lock();
  while (!stopping_) {
    if (tasks_.empty()) {
      wake_.Wait(mutex_);
    } else if (auto due = tasks_.begin()->first; due > Clock::now()) {
      wake_.WaitUntil(mutex_, due);
    } else {
      Task task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
      mutex_.Unlock();
      task();
      task = nullptr;
      mutex_.Lock();
    }
  }
  mutex_.Unlock();
}

}  // namespace baton::rpc
