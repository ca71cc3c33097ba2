// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/future.h"
#include "rpc/registry.h"
#include "tests/rpc/counter.h"

namespace baton::testing {

// Calls of Wait are under way until the test answers them. One at a time, made
// before the cluster that serves Wait. Thread-safe.
class HeldCall {
 public:
  HeldCall();

  // A handler has begun to wait.
  bool AwaitEntered() { return state_->entered.Await(); }
  void Answer(int value) { state_->answer.Set(value); }

 private:
  friend Future<int> Wait();
  struct State {
    Promise<int> answer;
    Gate entered;
  };
  static std::shared_ptr<State>& Current();

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

Future<int> Wait();
// Wait and what counters need.
void FillHeldCall(rpc::Registry& registry);

}  // namespace baton::testing
