// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "rpc/channels/channel.h"

namespace baton::rpc {

// A channel's port whose other end is a channel of this process: brings what
// one end says to the other at once. Thread-safe.
class TestPort final : public ChannelPort {
 public:
  static constexpr std::chrono::seconds kLimit{30};

  void Connect(std::shared_ptr<Channel> other) {
    MutexLock lock(mutex_);
    other_ = std::move(other);
  }
  void SendControl(std::string payload) override {
    std::shared_ptr<Channel> other;
    {
      MutexLock lock(mutex_);
      other = other_.lock();
    }
    if (other != nullptr) other->OnControl(std::move(payload));
  }
  void Release(uint64_t lease, std::chrono::milliseconds within) override {
    MutexLock lock(mutex_);
    within_ = within;
    released_.push_back(lease);
    changed_.NotifyAll();
  }
  void Opened() override { Settle("open"); }
  void Failed(std::string why) override { Settle(why); }
  void Broke(std::string why) override {
    MutexLock lock(mutex_);
    broken_ = why;
    changed_.NotifyAll();
  }

  std::string AwaitSettled() {
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    MutexLock lock(mutex_);
    while (settled_.empty() && changed_.WaitUntil(mutex_, deadline)) {
    }
    return settled_;
  }
  std::string settled() {
    MutexLock lock(mutex_);
    return settled_;
  }
  std::string broken() {
    MutexLock lock(mutex_);
    return broken_;
  }
  std::string AwaitBroken() {
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    MutexLock lock(mutex_);
    while (broken_.empty() && changed_.WaitUntil(mutex_, deadline)) {
    }
    return broken_;
  }
  // Of the last lease that was released.
  std::chrono::milliseconds within() {
    MutexLock lock(mutex_);
    return within_;
  }
  std::vector<uint64_t> TakeReleased() {
    MutexLock lock(mutex_);
    return std::exchange(released_, {});
  }
  // Those, once there is one.
  std::vector<uint64_t> AwaitReleased() {
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    MutexLock lock(mutex_);
    while (released_.empty() && changed_.WaitUntil(mutex_, deadline)) {
    }
    return std::exchange(released_, {});
  }

 private:
  void Settle(const std::string& how) {
    MutexLock lock(mutex_);
    settled_ = how;
    changed_.NotifyAll();
  }
  Mutex mutex_;
  CondVar changed_;
  std::weak_ptr<Channel> other_ ABSL_GUARDED_BY(mutex_);
  std::string settled_ ABSL_GUARDED_BY(mutex_);
  std::string broken_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> released_ ABSL_GUARDED_BY(mutex_);
  std::chrono::milliseconds within_ ABSL_GUARDED_BY(mutex_){0};
};

}  // namespace baton::rpc
