// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Must not compile, and say: the method is not in the class's Exports
#include "tests/rpc/counter.h"

namespace baton::testing {
void Use(rpc::Agent& agent, const RRef<Counter>& counter) {
  (void)agent;
  (void)counter.Async<&Counter::NotExported>();
}
}  // namespace baton::testing
