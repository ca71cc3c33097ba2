// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/handle.h"

#include <atomic>
#include <utility>

#include "rpc/agent_core.h"

namespace baton::rpc::internal {

Handle::~Handle() {
  if (auto ownership = ownership_.lock()) ownership->OnDropped(*this);
}

Handle::State Handle::state() const {
  MutexLock lock(mutex_);
  return state_;
}

absl::Status Handle::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

// What waits may be to send large tensors or those of a GPU, and this thread
// one that reads messages.
void Handle::Confirm() {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kUnknown) return;
    state_ = State::kConfirmed;
    telling_ = !waiting_.empty();
    if (!telling_) return;
  }
  if (auto agent = agent_.lock()) {
    agent->completions()->PostOrCarry(
        [self = shared_from_this()] { self->TellWaiting(); });
  } else {
    TellWaiting();
  }
}

void Handle::TellWaiting() {
  for (;;) {
    std::vector<Confirmed> waiting;
    absl::Status status;
    {
      MutexLock lock(mutex_);
      telling_ = !waiting_.empty();
      if (!telling_) return;
      waiting.swap(waiting_);
      status = failure_;
    }
    for (Confirmed& callback : waiting) callback(status);
  }
}

bool Handle::FailWith(const absl::Status& why) {
  std::vector<Confirmed> waiting;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kFailed) return false;
    state_ = State::kFailed;
    failure_ = why;
    if (!telling_) waiting.swap(waiting_);
  }
  for (Confirmed& callback : waiting) callback(why);
  return true;
}

void Handle::WhenConfirmed(Confirmed callback) {
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kUnknown || telling_) {
      waiting_.push_back(std::move(callback));
      return;
    }
    status = failure_;
  }
  callback(status);
}

void WhenAllConfirmed(const std::vector<std::shared_ptr<Handle>>& handles,
                      std::function<void(const absl::Status&)> done) {
  if (handles.empty()) {
    done(absl::OkStatus());
    return;
  }
  struct Gather {
    std::function<void(const absl::Status&)> done;
    std::atomic<size_t> missing;
    std::atomic<bool> called{false};
  };
  auto gather = std::make_shared<Gather>();
  gather->done = std::move(done);
  gather->missing = handles.size();
  for (const auto& handle : handles) {
    handle->WhenConfirmed([gather](const absl::Status& status) {
      const bool last = --gather->missing == 0;
      if ((!status.ok() || last) && !gather->called.exchange(true)) {
        gather->done(status);
      }
    });
  }
}

}  // namespace baton::rpc::internal
