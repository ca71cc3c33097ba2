// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>

#include "core/mutex.h"

namespace baton::rpc {

// What keeps a worker's sends apart from NCCL's calls that wait until its GPU
// is idle (core/cuda/nccl.h): a send that its peer has not taken yet runs until
// the peer launches something, which the peer cannot while it makes such a call
// with a send of its own on the GPU. So nobody makes one before all sends have
// ended. Tokens count until they are dropped. Thread-safe.
class NcclTraffic : public std::enable_shared_from_this<NcclTraffic> {
 public:
  using Token = std::shared_ptr<void>;

  // Of a send until it has ended, or is to be aborted. Null: not now.
  Token BeginSend();
  // No send begins until it is dropped.
  Token Hold();
  bool IsHeld() const;
  // Whether those that had begun have ended.
  bool IsQuiet() const;
  bool AwaitQuiet(std::chrono::milliseconds limit) const;  // false: it is not
  // To open lines, which one end does at a time. Null: another does.
  Token TakeTurn();

 private:
  Token CountedLocked(int NcclTraffic::*count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  mutable CondVar changed_;
  int sends_ ABSL_GUARDED_BY(mutex_) = 0;
  int holds_ ABSL_GUARDED_BY(mutex_) = 0;
  int turns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton::rpc
