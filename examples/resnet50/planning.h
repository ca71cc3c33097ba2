// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/resnet50/settings.h"
#include "examples/resnet50/trainable.h"
#include "examples/support/measurement.h"
#include "models/distributed/partition.h"
#include "rpc/agent.h"

namespace baton::examples {

// Has the workers measure the model on rows of `sample`, a whole batch, tries
// the best plans with models of their own, prints them, and puts the fastest in
// the settings: cuts, split sizes and schedule. Of the workers those of the
// plan stay, as its stages need them.
absl::StatusOr<dist::Plan> ChooseStages(rpc::Agent& agent,
                                        const TrainingBatch& sample,
                                        Settings& settings,
                                        std::vector<std::string>& workers);

// Adds to measurements of pipelines what the plan had predicted, beside what a
// step took; the same for people, a line for each.
std::string ComparePlan(const dist::Plan& plan, const Settings& settings,
                        std::vector<Measurement>& measurements);

}  // namespace baton::examples
