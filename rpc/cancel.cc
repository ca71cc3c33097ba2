// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/cancel.h"

#include <utility>

namespace baton::rpc {

bool CancelToken::cancelled() const {
  return state_ != nullptr && state_->cancelled;
}

absl::Status CancelToken::reason() const {
  if (!cancelled()) return absl::OkStatus();
  MutexLock lock(state_->mutex);
  return state_->reason;
}

uint64_t CancelToken::OnCancel(Callback callback) const {
  if (state_ == nullptr) return 0;
  absl::Status reason;
  {
    MutexLock lock(state_->mutex);
    reason = state_->reason;
    if (reason.ok()) {
      state_->callbacks.emplace(state_->next, std::move(callback));
      return state_->next++;
    }
  }
  callback(reason);
  return 0;
}

void CancelToken::Remove(uint64_t number) const {
  if (state_ == nullptr || number == 0) return;
  // destroyed after the lock is released, since it may own anything
  Callback dropped;
  {
    MutexLock lock(state_->mutex);
    auto found = state_->callbacks.find(number);
    if (found == state_->callbacks.end()) return;
    dropped = std::move(found->second);
    state_->callbacks.erase(found);
  }
}

CancelSource::CancelSource() {
  token_.state_ = std::make_shared<CancelToken::State>();
}

void CancelSource::Cancel(absl::Status reason) const {
  std::map<uint64_t, CancelToken::Callback> callbacks;
  {
    MutexLock lock(token_.state_->mutex);
    if (!token_.state_->reason.ok()) return;
    token_.state_->reason = reason;
    token_.state_->cancelled = true;
    callbacks.swap(token_.state_->callbacks);
  }
  for (auto& [number, callback] : callbacks) callback(reason);
}

}  // namespace baton::rpc
