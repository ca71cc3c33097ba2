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

// A model to make a plan for.
struct PlannedModel {
  double parameter_copies = 2;  // as in dist::PlanRequest
  std::function<absl::StatusOr<dist::ClusterProfile>(
      const std::vector<std::string>& workers,
      const dist::ProfileRequest& request, std::chrono::milliseconds timeout)>
      measure;
  // Makes the model as the settings' cuts, schedule, and micro-batches or first
  // split size say.
  std::function<absl::StatusOr<std::unique_ptr<Trainable>>(
      const std::vector<std::string>& workers,
      const PipelineSettings& settings)>
      make;
  // Returns true if all of these workers compute on GPUs.
  std::function<bool(const std::vector<std::string>& workers)> on_gpus;
};

// Returns true if ChooseStages is to be called: because of
// settings.choose_stages, or because no flag says how to cut and several
// workers have GPUs, for which the default of small micro-batches in two stages
// is slower than one GPU. Then sets the settings to those of --stages=auto.
bool StagesAreOpen(const PlannedModel& planned,
                   const std::vector<std::string>& workers,
                   PipelineSettings& settings);

// Measures the model's units at the workers on rows of `sample`, a whole batch.
// Then tries the best plans with new models, prints them, and writes the
// fastest to the settings: cuts, split sizes and schedule. `workers` becomes
// the plan's workers, in the order of its stages. Finally, unless the workers'
// memory is limited, tries settings that have their defaults on top of the
// fastest plan, and keeps those that make it faster, as settings.refined_by
// says: micro-batches of unequal sizes (dist::UnequalSplits) and, on GPUs,
// overlap and at_once. What lacks the memory when it is tried is not chosen.
absl::StatusOr<dist::Plan> ChooseStages(const PlannedModel& planned,
                                        const TrainingBatch& sample,
                                        PipelineSettings& settings,
                                        std::vector<std::string>& workers);

// Adds the plan's prediction, which is without refinements, to the measurements
// of pipelines, whose repeats have `steps` steps. Returns a line for each that
// compares it with the measured step.
std::string ComparePlan(const dist::Plan& plan,
                        const std::vector<std::string>& refined_by,
                        int64_t steps, std::vector<Measurement>& measurements);

}  // namespace baton::examples
