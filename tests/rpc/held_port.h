// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "rpc/channels/channel.h"

namespace baton::rpc {

// A channel's port that keeps what is said until the test brings it.
// Thread-safe.
class HeldPort final : public ChannelPort {
 public:
  void SendControl(std::string payload) override {
    MutexLock lock(mutex_);
    said_.push_back(std::move(payload));
  }
  void Release(uint64_t lease, std::chrono::milliseconds) override {
    MutexLock lock(mutex_);
    released_.push_back(lease);
  }
  void Opened() override { open_ = true; }
  void Failed(std::string) override { open_ = false; }
  void Broke(std::string) override { broken_ = true; }

  bool open() const { return open_; }
  bool broken() const { return broken_; }
  std::optional<std::string> TakeSaid() {
    MutexLock lock(mutex_);
    if (said_.empty()) return std::nullopt;
    std::string payload = std::move(said_.front());
    said_.pop_front();
    return payload;
  }
  std::vector<uint64_t> TakeReleased() {
    MutexLock lock(mutex_);
    return std::exchange(released_, {});
  }

 private:
  std::atomic<bool> open_{false}, broken_{false};
  Mutex mutex_;
  std::deque<std::string> said_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> released_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
