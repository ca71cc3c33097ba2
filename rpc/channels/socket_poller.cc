// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/socket_poller.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/spinning.h"

namespace baton::rpc {
namespace {

// The id of the descriptor that wakes the thread; those of sockets follow.
constexpr uint64_t kWakeup = 0;
constexpr int kEventsAtOnce = 64;
constexpr int64_t kLongestSleep = 60'000;  // ms

}  // namespace

// The thread holds the poller itself, so the result is another count of it,
// which does not include the thread.
std::shared_ptr<SocketPoller> SocketPoller::Make(const char* name) {
  std::shared_ptr<SocketPoller> poller(new SocketPoller(name));
  SocketPoller* const made = poller.get();
  return {made, [poller = std::move(poller)](SocketPoller*) mutable {
            std::exchange(poller, nullptr)->Stop();
          }};
}

absl::Status SocketPoller::Start() {
  MutexLock lock(mutex_);
  if (stopping_ || thread_.joinable()) return absl::OkStatus();
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wakeup_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeup}};
  if (!epoll_.valid() || !wakeup_.valid() ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot watch sockets: ", std::strerror(errno)));
  }
  thread_ = std::thread([self = shared_from_this()] { self->Run(); });
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SocketPoller::Add(std::shared_ptr<const Fd> socket,
                                           For what, Step step) {
  MutexLock lock(mutex_);
  if (stopping_) return absl::CancelledError("the poller is gone");
  const uint64_t id = ++last_id_;
  // Waits for no event yet: the first step needs none.
  epoll_event none{.events = EPOLLONESHOT, .data = {.u64 = id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket->get(), &none) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot watch a socket: ", std::strerror(errno)));
  }
  const uint32_t events = what == For::kReading ? EPOLLIN : EPOLLOUT;
  added_.emplace_back(
      id, Source{std::move(socket), events | EPOLLONESHOT, std::move(step)});
  woken_.push_back(id);
  WakeLocked();
  return id;
}

void SocketPoller::Wake(uint64_t id) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  woken_.push_back(id);
  WakeLocked();
}

void SocketPoller::After(std::chrono::milliseconds delay, Task task) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  timers_.emplace(Clock::now() + delay, std::move(task));
  WakeLocked();
}

void SocketPoller::WakeLocked() {
  if (std::exchange(asleep_, false)) eventfd_write(wakeup_.get(), 1);
}

void SocketPoller::Stop() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    WakeLocked();
    thread = std::move(thread_);
  }
  if (!thread.joinable()) return;
  // A step may drop the poller.
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

void SocketPoller::Run() {
  pthread_setname_np(pthread_self(), name_);
  Ids ready;
  std::vector<Task> due;
  while (Gather(ready, due)) {
    for (Task& task : due) std::move(task)();
    due.clear();
    Ids now;
    now.swap(ready);
    for (const uint64_t id : now) Serve(id, ready);
    Await(ready);
  }
  // Without the lock: what they hold may call this object.
  sources_.clear();
  std::vector<std::pair<uint64_t, Source>> added;
  std::multimap<Clock::time_point, Task> timers;
  MutexLock lock(mutex_);
  added.swap(added_);
  timers.swap(timers_);
}

bool SocketPoller::Gather(Ids& ready, std::vector<Task>& due) {
  MutexLock lock(mutex_);
  asleep_ = false;
  if (stopping_) return false;
  for (auto& [id, source] : added_) sources_.emplace(id, std::move(source));
  added_.clear();
  ready.insert(ready.end(), woken_.begin(), woken_.end());
  woken_.clear();
  std::sort(ready.begin(), ready.end());
  ready.erase(std::unique(ready.begin(), ready.end()), ready.end());
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    due.push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
  }
  if (!ready.empty() || !due.empty()) Spinning::OfThisThread().Came();
  return true;
}

void SocketPoller::Serve(uint64_t id, Ids& again) {
  const auto found = sources_.find(id);
  if (found == sources_.end()) return;
  Source& source = found->second;
  switch (source.step()) {
    case Then::kWhenReadable:
      source.events = EPOLLIN | EPOLLONESHOT;
      [[fallthrough]];
    case Then::kWhenReady: {
      epoll_event event{.events = source.events, .data = {.u64 = id}};
      epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, source.socket->get(), &event);
      break;
    }
    case Then::kWhenWoken:
      break;
    case Then::kAgain:
      again.push_back(id);
      break;
    case Then::kEnd:
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, source.socket->get(), nullptr);
      sources_.erase(found);
      break;
  }
}

void SocketPoller::Await(Ids& ready) {
  const bool spin = !ready.empty() || Spinning::OfThisThread().Wait();
  epoll_event events[kEventsAtOnce];
  const int count =
      epoll_wait(epoll_.get(), events, kEventsAtOnce, spin ? 0 : SleepLimit());
  for (int i = 0; i < count; ++i) {
    const uint64_t id = events[i].data.u64;  // not aligned: a copy
    eventfd_t wakeups;
    if (id != kWakeup) {
      ready.push_back(id);
    } else {
      eventfd_read(wakeup_.get(), &wakeups);
    }
  }
}

// Returns ms, as for epoll. From then on other threads must wake this one.
int SocketPoller::SleepLimit() {
  MutexLock lock(mutex_);
  if (stopping_ || !woken_.empty()) return 0;
  asleep_ = true;
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      timers_.begin()->first - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLongestSleep));
}

}  // namespace baton::rpc
