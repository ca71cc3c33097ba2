// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor.h"
#include "rpc/call_scope.h"
#include "rpc/cancel.h"
#include "rpc/ids.h"
#include "rpc/worker.h"

namespace baton::rpc {

class Agent;

// What a handler knows of the call that it serves; an exported method that
// wants it takes `CallContext&` first. Given in turn as the first argument of
// a nested call, it hands on what is left of the deadline, the cancellation,
// the scope and the right to come back to the object whose handler this is:
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
  // How this worker computes: its device, above all. That of the caller is
  // caller().compute.
  const Compute& compute() const;
  // An uninitialised tensor to be filled and given back as the result, or as
  // part of it: Agent::EmptyFor the caller, under the same conditions. Results
  // with RRefs are copied all the same, and so are those of a Future that is
  // not ready when the handler gives it. Throws as Tensor::Empty does.
  Tensor EmptyForCaller(const Shape& shape,
                        const TensorOptions& options = {}) const;

  std::chrono::steady_clock::time_point deadline() const {
    return state_->deadline;
  }
  // Never negative; kNoLimit for a call without a deadline.
  std::chrono::milliseconds remaining() const;

  // True once the caller has given up, its deadline has passed or it is lost.
  bool cancelled() const { return state_->cancel.token().cancelled(); }
  const CancelToken& token() const { return state_->cancel.token(); }
  // At most once, on one of the agent's threads; at once when cancelled
  // already.
  void OnCancel(CancelToken::Callback callback) const {
    token().OnCancel(std::move(callback));
  }

  // The scope that the caller used, as seen here; null when there was none.
  const std::shared_ptr<CallScope>& call_scope() const { return state_->scope; }

  // Its hold of its object and those of the calls that wait for this one, for
  // what is to come in beside them (rpc/object_lock.h).
  const std::vector<HoldId>& holds() const { return state_->holds; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace baton::rpc
