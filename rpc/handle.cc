// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/handle.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "rpc/agent_core.h"

namespace baton::rpc::internal {
namespace {

// Up to this many brief callbacks count as brief together.
constexpr size_t kFew = 8;

}  // namespace

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

void Handle::Confirm() {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kUnknown) return;
    state_ = State::kConfirmed;
    telling_ = true;
  }
  // This thread may be one that reads messages, so it runs only brief
  // callbacks.
  TellWaiting(Then::kIsBrief);
}

void Handle::TellWaiting(Then most) {
  for (;;) {
    std::vector<Confirmed> waiting;
    absl::Status status;
    {
      MutexLock lock(mutex_);
      telling_ = !waiting_.empty();
      if (!telling_) return;
      if (longest_ <= most) {
        waiting.swap(waiting_);
        longest_ = Then::kIsBrief;
        status = failure_;
      }
    }
    for (Confirmed& callback : waiting) callback(status);
    if (!waiting.empty()) continue;
    most = Then::kMayWait;
    if (auto agent = agent_.lock()) {
      agent->completions()->PostOrRunInline(
          [self = shared_from_this(), most] { self->TellWaiting(most); });
      return;
    }
  }
}

bool Handle::FailWith(const absl::Status& why, Owner owner) {
  std::vector<Confirmed> waiting;
  std::vector<OwnerLost> handlers;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kFailed) return false;
    state_ = State::kFailed;
    failure_ = why;
    owner_ = owner;
    if (!telling_) waiting.swap(waiting_);
    handlers.swap(on_owner_lost_);
  }
  for (Confirmed& callback : waiting) callback(why);
  if (owner == Owner::kIsLost) TellLost(std::move(handlers), why);
  return true;
}

void Handle::OnOwnerLost(OwnerLost handler) {
  if (is_owner()) return;
  absl::Status why;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kFailed) {
      on_owner_lost_.push_back(std::move(handler));
      return;
    }
    if (owner_ != Owner::kIsLost) return;
    why = failure_;
  }
  TellLost({std::move(handler)}, why);
}

// The task does not keep the handle: who drops it will not be told.
void Handle::TellLost(std::vector<OwnerLost> handlers,
                      const absl::Status& why) {
  auto agent = agent_.lock();
  if (handlers.empty() || agent == nullptr || agent->shutting_down()) return;
  agent->workers().Post(
      [weak = weak_from_this(), handlers = std::move(handlers), why] {
        const HandlePtr self = weak.lock();
        if (self == nullptr) return;
        for (const OwnerLost& handler : handlers) handler(self, why);
      });
}

void Handle::WhenConfirmed(Confirmed callback, Then then) {
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kUnknown || telling_) {
      waiting_.push_back(std::move(callback));
      longest_ =
          waiting_.size() > kFew ? Then::kMayWait : std::max(longest_, then);
      return;
    }
    status = failure_;
  }
  callback(status);
}

bool Handle::settled() const {
  MutexLock lock(mutex_);
  return state_ != State::kUnknown && !telling_;
}

bool AllSettled(const std::vector<std::shared_ptr<Handle>>& handles) {
  return std::all_of(handles.begin(), handles.end(),
                     [](const auto& handle) { return handle->settled(); });
}

absl::Status Handle::MoveTo(std::shared_ptr<Handle> successor) {
  if (successor.get() == this) {
    return absl::InvalidArgumentError("a handle moves to another one");
  }
  std::shared_ptr<Handle> next;
  {
    const MutexLock lock(mutex_);
    if (successor_ == nullptr) {
      successor_ = std::move(successor);
      moved_.store(true, std::memory_order_release);
      return absl::OkStatus();
    }
    next = successor_;
  }
  return next->MoveTo(std::move(successor));
}

const std::shared_ptr<Handle>& Handle::successor() const {
  static const std::shared_ptr<Handle> none;
  return moved_.load(std::memory_order_acquire) ? successor_ : none;
}

const std::shared_ptr<Handle>& Current(const std::shared_ptr<Handle>& handle) {
  const std::shared_ptr<Handle>* current = &handle;
  while (*current != nullptr && (*current)->successor() != nullptr)
    current = &(*current)->successor();
  return *current;
}

void WhenAllConfirmed(const std::vector<std::shared_ptr<Handle>>& handles,
                      std::function<void(const absl::Status&)> done,
                      Handle::Then then) {
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
    handle->WhenConfirmed(
        [gather](const absl::Status& status) {
          const bool last = --gather->missing == 0;
          if ((!status.ok() || last) && !gather->called.exchange(true)) {
            gather->done(status);
          }
        },
        then);
  }
}

}  // namespace baton::rpc::internal
