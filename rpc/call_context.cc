// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_context.h"

#include <algorithm>
#include <utility>

#include "core/future.h"
#include "rpc/agent.h"

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

Tensor CallContext::EmptyForCaller(const Shape& shape,
                                   const TensorOptions& options) const {
  auto shared = agent().EmptyFor(caller(), shape, options);
  // If the caller is gone, the handler still gets an ordinary tensor.
  return shared.ok() ? *std::move(shared) : Tensor::Empty(shape, options);
}

const Compute& CallContext::compute() const { return agent().self().compute; }

std::chrono::milliseconds CallContext::remaining() const {
  using std::chrono::steady_clock;
  if (deadline() == steady_clock::time_point::max()) return kNoLimit;
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      deadline() - steady_clock::now()));
}

}  // namespace baton::rpc
