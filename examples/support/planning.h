// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/support/measurement.h"
#include "examples/support/pipeline_settings.h"
#include "examples/support/trainable.h"
#include "models/distributed/partition.h"
#include "models/distributed/profile.h"

namespace baton::examples {

// A model for which a plan is made.
struct PlannedModel {
  double parameter_copies = 2;  // as in dist::PlanRequest
  std::function<absl::StatusOr<dist::ClusterProfile>(
      const std::vector<std::string>& workers,
      const dist::ProfileRequest& request, std::chrono::milliseconds timeout)>
      measure;
  // By the settings' cuts, schedule and first split size.
  std::function<absl::StatusOr<std::unique_ptr<Trainable>>(
      const std::vector<std::string>& workers,
      const PipelineSettings& settings)>
      make;
};

// Has the workers measure the model on rows of `sample`, a whole batch, tries
// the best plans with models of their own, prints them, and puts the fastest in
// the settings: cuts, split sizes and schedule. Of the workers those of the
// plan stay, as its stages need them.
absl::StatusOr<dist::Plan> ChooseStages(const PlannedModel& planned,
                                        const TrainingBatch& sample,
                                        PipelineSettings& settings,
                                        std::vector<std::string>& workers);

// Adds to measurements of pipelines, whose repeats are of so many steps, what
// the plan had predicted, beside what a step took; the same for people, a line
// for each.
std::string ComparePlan(const dist::Plan& plan, int64_t steps,
                        std::vector<Measurement>& measurements);

}  // namespace baton::examples
