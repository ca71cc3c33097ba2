// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/call_scope.h"
#include "rpc/ids.h"
#include "rpc/worker.h"

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

class Agent;

// What a handler knows of the call that it serves. An exported method may take
// `CallContext&` as its first parameter. Passed as the first argument of a
// nested call, it passes on the remaining time, the cancellation, the scope and
// the right to call back to the handler's object:
//   Future<Tensor> Forward(rpc::CallContext& call, Tensor x) {
//     return next_.Async<&Stage::Forward>(call, x);
//   }
// Copyable handle, valid as long as the agent lives. Thread-safe.
class CallContext {
 public:
  struct State {
    WorkerInfo caller;
    Agent* agent = nullptr;
    std::chrono::steady_clock::time_point deadline =
        std::chrono::steady_clock::time_point::max();
    std::shared_ptr<CallScope> scope;
    CancelSource cancel;
    std::string_view method;
    std::vector<HoldId> holds;
  };
  explicit CallContext(std::shared_ptr<State> state)
      : state_(std::move(state)) {}

  const WorkerInfo& caller() const { return state_->caller; }
  std::string_view method() const {
    return state_->method;
  }  // "Stage::Forward"
  Agent& agent() const { return *state_->agent; }
  // How this worker computes, above all its device. For the caller, see
  // caller().compute.
  const Compute& compute() const;
  // Returns an uninitialized tensor to be filled and returned as the result or
  // a part of it: Agent::EmptyFor the caller, with the same conditions. The
  // tensor is copied all the same if the result contains RRefs or is a Future
  // that is not ready when the handler returns it. Throws as Tensor::Empty
  // does.
  Tensor EmptyForCaller(const Shape& shape,
                        const TensorOptions& options = {}) const;

  std::chrono::steady_clock::time_point deadline() const {
    return state_->deadline;
  }
  // Never negative; kNoLimit for a call without a deadline.
  std::chrono::milliseconds remaining() const;

  // True once the caller has given up or is lost, or the deadline has passed.
  bool cancelled() const { return state_->cancel.token().cancelled(); }
  const CancelToken& token() const { return state_->cancel.token(); }
  // Calls `callback` at most once, on one of the agent's threads; at once if
  // already cancelled.
  void OnCancel(CancelToken::Callback callback) const {
    token().OnCancel(std::move(callback));
  }

  // This worker's counterpart of the scope that the caller used; null if there
  // was none.
  const std::shared_ptr<CallScope>& call_scope() const { return state_->scope; }

  // This call's hold of its object and the holds of the calls that wait for
  // this call. Uses that name them are let in beside them (rpc/object_lock.h).
  const std::vector<HoldId>& holds() const { return state_->holds; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace baton::rpc
