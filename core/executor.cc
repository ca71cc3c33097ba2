// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/executor.h"

#include <pthread.h>

#include <utility>

namespace baton {
namespace {
thread_local ThreadPool* current_pool = nullptr;
}  // namespace

ThreadPool::ThreadPool(int threads, std::string name)
    : target_(threads < 1 ? 1 : threads), name_(std::move(name)) {}

ThreadPool::~ThreadPool() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  // A running task may still start a spare thread, hence the loop.
  for (;;) {
    {
      MutexLock lock(mutex_);
      threads.swap(threads_);
    }
    if (threads.empty()) return;
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }
}

void ThreadPool::Post(Task task) {
  MutexLock lock(mutex_);
  queue_.push_back(std::move(task));
  if (idle_ > 0) {
    wake_.NotifyOne();
  }
  if (static_cast<int>(queue_.size()) > idle_ && alive_ - blocked_ < target_) {
    StartThreadLocked();
  }
}

int ThreadPool::idle_threads() const {
  MutexLock lock(mutex_);
  return idle_;
}

void ThreadPool::StartThreadLocked() {
  ++alive_;
  threads_.emplace_back([this] { Run(); });
}

void ThreadPool::Run() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  current_pool = this;
  mutex_.Lock();
  for (;;) {
    while (queue_.empty() && !stopping_) {
      ++idle_;
      wake_.Wait(mutex_);
      --idle_;
    }
    if (queue_.empty()) break;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    mutex_.Unlock();
    task();
    task = nullptr;
    mutex_.Lock();
  }
  --alive_;
  mutex_.Unlock();
}

void ThreadPool::EnterBlocking() {
  MutexLock lock(mutex_);
  ++blocked_;
  if (!queue_.empty() && idle_ == 0) StartThreadLocked();
}

void ThreadPool::LeaveBlocking() {
  MutexLock lock(mutex_);
  --blocked_;
}

BlockingScope::BlockingScope() : pool_(current_pool) {
  if (pool_ != nullptr) pool_->EnterBlocking();
}

BlockingScope::~BlockingScope() {
  if (pool_ != nullptr) pool_->LeaveBlocking();
}

}  // namespace baton
