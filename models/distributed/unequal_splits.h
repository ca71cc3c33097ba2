// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/distributed/partition.h"
#include "models/distributed/profile.h"

namespace baton::dist {

// Returns micro-batches of unequal sizes that are worth trying with the plan,
// as PipelineOptions::micro_batches: with half of the rows in the first of
// them, for which all later stages wait, in the last, for which all earlier
// ones do, or in both. The rows that are left go to the part at the other end,
// or to those between. The first kind is always among them, because it saves
// more than simulations say; the others if their simulated step is shorter than
// the plan's. Leaves out what has fewer rows than a model trains on, and what
// exceeds the memory of `request`. Errors are those of Simulate and
// MakeSchedule.
absl::StatusOr<std::vector<std::vector<int64_t>>> UnequalSplits(
    const ClusterProfile& profile, const PlanRequest& request,
    const Plan& plan);

}  // namespace baton::dist
