// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "core/mutex.h"

namespace baton::rpc {

// Tells many listeners, once, that work should stop, and why. The source and
// its tokens share one state. Thread-safe.
class CancelToken {
 public:
  using Callback = std::function<void(const absl::Status&)>;

  CancelToken() = default;  // never cancelled

  bool cancelled() const;
  absl::Status reason() const;  // OK until cancelled
  // Calls `callback` on the cancelling thread, or at once if already cancelled.
  // Returns a number for Remove.
  uint64_t OnCancel(Callback callback) const;
  void Remove(uint64_t number) const;

 private:
  friend class CancelSource;
  struct State {
    Mutex mutex;
    std::atomic<bool> cancelled{false};  // set once, after `reason`
    absl::Status reason ABSL_GUARDED_BY(mutex);
    uint64_t next ABSL_GUARDED_BY(mutex) = 1;
    std::map<uint64_t, Callback> callbacks ABSL_GUARDED_BY(mutex);
  };
  std::shared_ptr<State> state_;
};

class CancelSource {
 public:
  CancelSource();
  // `reason` must not be OK. The first one wins.
  void Cancel(absl::Status reason = absl::CancelledError("cancelled")) const;
  const CancelToken& token() const { return token_; }

 private:
  CancelToken token_;
};

}  // namespace baton::rpc
