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
  // By the settings' cuts, schedule and micro-batches, or first split size.
  std::function<absl::StatusOr<std::unique_ptr<Trainable>>(
      const std::vector<std::string>& workers,
      const PipelineSettings& settings)>
      make;
  // Whether all of these workers compute on GPUs.
  std::function<bool(const std::vector<std::string>& workers)> on_gpus;
  // Batches may have fewer rows than the sample.
  bool ragged = false;
};

// Whether ChooseStages is to be called: by settings.choose_stages, or where no
// flag says how to cut and several workers have GPUs, for which the default of
// small micro-batches in two stages is slower than one of them alone. Then the
// settings become those of --stages=auto.
bool StagesAreOpen(const PlannedModel& planned,
                   const std::vector<std::string>& workers,
                   PipelineSettings& settings);

// Has the workers measure the model on rows of `sample`, a whole batch, tries
// the best plans with models of their own, prints them, and puts the fastest in
// the settings: cuts, split sizes and schedule. Of the workers those of the
// plan stay, as its stages need them. Of what the settings leave as it is by
// default, a shorter first micro-batch, and on GPUs overlap and at_once, are
// tried on top of the fastest, and stay where they make it faster.
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
