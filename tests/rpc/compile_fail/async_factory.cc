// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Must not compile, and say: the method makes an object that stays with its owner
#include "tests/rpc/counter.h"

namespace baton::testing {
void Use(rpc::Agent& agent, const RRef<Counter>& counter) {
  (void)agent;
  (void)agent.Async<&Counter::Make>("bob", 1);
}
}  // namespace baton::testing
