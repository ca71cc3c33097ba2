// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Must not compile, and say: arguments do not match the remote method
#include "tests/rpc/counter.h"

namespace baton::testing {
void Use(rpc::Agent& agent, const RRef<Counter>& counter) {
  (void)agent;
  (void)counter.Async<&Counter::Add>("text");
}
}  // namespace baton::testing
