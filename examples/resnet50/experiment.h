// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/resnet50/settings.h"
#include "examples/support/measurement.h"
#include "examples/support/pipeline_settings.h"
#include "examples/support/trainable.h"

namespace baton::examples {

// Random images and labels: the tutorial's batches, the same for each variant.
std::vector<TrainingBatch> SyntheticBatches(const Settings& settings);

// Makes the model of each variant in turn, warms it up, then measures the
// repeats. Shows progress. `details`: what holds for all measurements.
using MakeTrainable =
    std::function<absl::StatusOr<std::unique_ptr<Trainable>>(const Variant&)>;
absl::StatusOr<std::vector<Measurement>> RunExperiment(
    const Settings& settings, const MakeTrainable& make,
    const std::vector<Detail>& details = {});

}  // namespace baton::examples
