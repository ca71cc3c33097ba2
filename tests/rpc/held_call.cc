// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/held_call.h"

namespace baton::testing {

HeldCall::HeldCall() { Current() = state_; }

std::shared_ptr<HeldCall::State>& HeldCall::Current() {
  static auto* current = new std::shared_ptr<State>();
  return *current;
}

Future<int> Wait() {
  const auto state = HeldCall::Current();
  state->entered.Open();
  return state->answer.future();
}

void FillHeldCall(rpc::Registry& registry) {
  FillCounter(registry);
  registry.AddFunction<&Wait>();
}

}  // namespace baton::testing
