// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "models/distributed/workload.h"

namespace baton::dist {

// What comes first where a worker could do several things of a kind at once.
enum class FirstOf { kMicroBatches, kLaterStages };

// What can begin first does; of several a backward before a forward before
// gradients of weights, which so fill what would be idle. No worker holds more
// than work.most_held (at least 1) allows, and a forward begins only where all
// that is in flight can still be ended within it. For a workload that is right
// (CheckWorkload).
Schedule ListSchedule(const Workload& work, FirstOf ties);

}  // namespace baton::dist
