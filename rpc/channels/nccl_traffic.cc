// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl_traffic.h"

namespace baton::rpc {

NcclTraffic::Token NcclTraffic::CountedLocked(int NcclTraffic::*count) {
  ++(this->*count);
  return {this, [self = shared_from_this(), count](void*) {
            MutexLock lock(self->mutex_);
            --((*self).*count);
            self->changed_.NotifyAll();
          }};
}

NcclTraffic::Token NcclTraffic::BeginSend() {
  MutexLock lock(mutex_);
  return holds_ > 0 ? nullptr : CountedLocked(&NcclTraffic::sends_);
}

NcclTraffic::Token NcclTraffic::Hold() {
  MutexLock lock(mutex_);
  return CountedLocked(&NcclTraffic::holds_);
}

NcclTraffic::Token NcclTraffic::TakeTurn() {
  MutexLock lock(mutex_);
  return turns_ > 0 ? nullptr : CountedLocked(&NcclTraffic::turns_);
}

bool NcclTraffic::IsHeld() const {
  MutexLock lock(mutex_);
  return holds_ > 0;
}

bool NcclTraffic::IsQuiet() const {
  MutexLock lock(mutex_);
  return sends_ == 0;
}

bool NcclTraffic::AwaitQuiet(std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (sends_ > 0 && changed_.WaitUntil(mutex_, deadline)) {
  }
  return sends_ == 0;
}

}  // namespace baton::rpc
