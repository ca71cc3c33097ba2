// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "models/distributed/workload.h"

namespace baton::dist {

// Which of several instructions of one kind a worker prefers.
enum class FirstOf { kMicroBatches, kLaterStages };

// Greedy scheduling: the instruction that can begin first is next; among
// equals, backwards come before forwards, and weight gradients, which fill idle
// time, come last. No worker holds more than work.most_held, which must be at
// least 1; a forward begins only if everything in flight can still finish
// within that limit. The workload must have passed CheckWorkload.
Schedule ListSchedule(const Workload& work, FirstOf ties);

}  // namespace baton::dist
