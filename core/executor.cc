// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/executor.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "core/inline_task.h"
#include "core/mutex.h"

namespace baton {

class ThreadPool::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(int threads, std::string name)
      : target_(threads < 1 ? 1 : threads), name_(std::move(name)) {}
  // If one of its own tasks stopped the pool, a spare thread may hold the last
  // reference to this, and there is no thread left to join it.
  ~Core() {
    for (std::thread& thread : finished_) thread.detach();
    for (std::thread& thread : threads_) thread.detach();
  }

  void Post(Task task) {
    std::vector<std::thread> finished;
    {
      MutexLock lock(mutex_);
      queue_.push_back(std::move(task));
      WakeOneLocked();
      StartThreadIfNeededLocked();
      finished.swap(finished_);
    }
    for (std::thread& thread : finished) thread.join();
  }

  // A task in an InlineTask counts as posted until it is put down.
  void PickUp() { ++carried_; }
  void PutDown() {
    MutexLock lock(mutex_);
    --carried_;
    put_down_.NotifyAll();
  }
  // Runs the task on the calling thread, unless other tasks precede it or the
  // pool's threads are all busy. A picked-up task is put down by this.
  bool Visit(Task& task);

  // Returns when all threads but the calling one have ended.
  void Stop() {
    {
      MutexLock lock(mutex_);
      const int own = visited == this ? 1 : 0;
      while (carried_ > own) put_down_.Wait(mutex_);
      stopping_ = true;
      wake_.NotifyAll();
    }
    // A running task may still start a spare thread, hence the loop.
    for (;;) {
      std::vector<std::thread> threads;
      {
        MutexLock lock(mutex_);
        threads.swap(finished_);
        std::move(threads_.begin(), threads_.end(),
                  std::back_inserter(threads));
        threads_.clear();
      }
      if (threads.empty()) return;
      for (std::thread& thread : threads) {
        if (thread.get_id() == std::this_thread::get_id()) {
          thread.detach();
        } else {
          thread.join();
        }
      }
    }
  }

  void EnterBlocking() {
    MutexLock lock(mutex_);
    ++blocked_;
    if (!queue_.empty()) WakeOneLocked();
    StartThreadIfNeededLocked();
  }

  void LeaveBlocking() {
    MutexLock lock(mutex_);
    --blocked_;
  }

  int target() const { return target_; }
  int idle() const {
    MutexLock lock(mutex_);
    return idle_;
  }
  int alive() const {
    MutexLock lock(mutex_);
    return alive_;
  }

 private:
  void StartThreadIfNeededLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (static_cast<int>(queue_.size()) <= idle_) return;
    if (alive_ - blocked_ >= target_) return;
    threads_.emplace_back([self = shared_from_this()] { self->Run(); });
    ++alive_;
  }

  // Wakes one thread at a time, which wakes the next if there is more to do, so
  // posting many tasks costs the poster one wake-up.
  void WakeOneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (idle_ == 0 || waking_) return;
    waking_ = true;
    wake_.NotifyOne();
  }

  void Run();

  // Visitors take the places of the pool's threads.
  bool CrowdedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return visitors_ > 0 && !stopping_ &&
           alive_ - idle_ - blocked_ + visitors_ > target_;
  }

  // Returns whether as many other threads as the pool should have are runnable.
  bool SurplusLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return alive_ - blocked_ > target_;
  }

  // Leaves the thread's handle for the next Post to join.
  void RetireLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    --alive_;
    const auto self = std::find_if(
        threads_.begin(), threads_.end(), [](const std::thread& thread) {
          return thread.get_id() == std::this_thread::get_id();
        });
    if (self == threads_.end()) return;  // Stop joins it
    finished_.push_back(std::move(*self));
    threads_.erase(self);
  }

  const int target_;
  const std::string name_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> finished_ ABSL_GUARDED_BY(mutex_);
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool waking_ ABSL_GUARDED_BY(mutex_) = false;  // one idle thread is being
                                                 // woken
  int blocked_ ABSL_GUARDED_BY(mutex_) = 0;      // including visitors
  int visitors_ ABSL_GUARDED_BY(mutex_) = 0;  // other threads that run a task
  std::atomic<int> carried_{0};               // tasks in InlineTasks
  CondVar put_down_;
  int alive_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  friend class baton::BlockingScope;
  static thread_local Core* current;
  static thread_local bool current_blocked;
  static thread_local Core* visited;
};

thread_local ThreadPool::Core* ThreadPool::Core::current = nullptr;
thread_local bool ThreadPool::Core::current_blocked = false;
thread_local ThreadPool::Core* ThreadPool::Core::visited = nullptr;

bool ThreadPool::Core::Visit(Task& task) {
  {
    MutexLock lock(mutex_);
    const int running = alive_ - idle_ - blocked_ + visitors_;
    if (!queue_.empty() || running >= target_) return false;
    ++visitors_;
  }
  current = visited = this;
  task();
  task = nullptr;
  current = visited = nullptr;
  MutexLock lock(mutex_);
  --visitors_;
  --carried_;
  put_down_.NotifyAll();
  if (!queue_.empty()) WakeOneLocked();
  return true;
}

void ThreadPool::Core::Run() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  current = this;
  mutex_.Lock();
  for (;;) {
    while ((queue_.empty() || CrowdedLocked()) && !stopping_ &&
           !SurplusLocked()) {
      ++idle_;
      wake_.Wait(mutex_);
      --idle_;
      waking_ = false;
    }
    if (queue_.empty() || SurplusLocked()) break;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    if (!queue_.empty()) WakeOneLocked();
    mutex_.Unlock();
    task();
    task = nullptr;
    mutex_.Lock();
  }
  // This thread may have been woken for a task that another idle thread must
  // run. Nobody else would wake that thread if the busy ones wait for the task.
  if (!queue_.empty()) WakeOneLocked();
  RetireLocked();
  mutex_.Unlock();
}

ThreadPool::ThreadPool(int threads, std::string name)
    : core_(std::make_shared<Core>(threads, std::move(name))) {}

ThreadPool::~ThreadPool() { core_->Stop(); }

void ThreadPool::Post(Task task) { core_->Post(std::move(task)); }
void ThreadPool::PostOrRunInline(Task task) {
  if (!InlineTask::Take(core_, task)) core_->Post(std::move(task));
}
int ThreadPool::threads() const { return core_->target(); }
int ThreadPool::idle_threads() const { return core_->idle(); }
int ThreadPool::alive_threads() const { return core_->alive(); }

BlockingScope::BlockingScope()
    : pool_(ThreadPool::Core::current_blocked ? nullptr
                                              : ThreadPool::Core::current) {
  if (pool_ == nullptr) return;
  ThreadPool::Core::current_blocked = true;
  pool_->EnterBlocking();
}

BlockingScope::~BlockingScope() {
  if (pool_ == nullptr) return;
  pool_->LeaveBlocking();
  ThreadPool::Core::current_blocked = false;
}

namespace {
thread_local InlineTask* inline_task = nullptr;
}  // namespace

InlineTask::InlineTask() { inline_task = this; }

InlineTask::~InlineTask() {
  inline_task = nullptr;
  Post();
}

bool InlineTask::Take(const std::shared_ptr<ThreadPool::Core>& pool,
                      Task& task) {
  if (inline_task == nullptr || inline_task->running_) return false;
  inline_task->Post();
  pool->PickUp();
  inline_task->pool_ = pool;
  inline_task->task_ = std::move(task);
  return true;
}

void InlineTask::Run() {
  if (task_ == nullptr) return;
  const auto pool = std::move(pool_);
  Task task = std::exchange(task_, nullptr);
  running_ = true;
  if (!pool->Visit(task)) {
    pool->Post(std::move(task));
    pool->PutDown();
  }
  running_ = false;
}

void InlineTask::Post() {
  if (task_ == nullptr) return;
  const auto pool = std::move(pool_);
  pool->Post(std::exchange(task_, nullptr));
  pool->PutDown();
}

}  // namespace baton
