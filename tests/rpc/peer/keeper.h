// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "rpc/agent.h"
#include "tests/rpc/counter.h"

// What worker_peer does for the tests that stop and kill it, beside all that a
// counter can.
namespace baton::testing {

// Holds the handle until the process ends.
int Keep(RRef<Counter> counter);
// The value of what was kept, asked of its owner.
Future<int> UseKept();
// Answers when the process ends.
Future<int> WaitForever();
// Keeps a thread of the pool busy, without a wait that would be noticed.
int Occupy(int milliseconds);
// The number of its elements.
int Measure(Tensor tensor);
void FillKeeper(rpc::Registry& registry);

}  // namespace baton::testing
