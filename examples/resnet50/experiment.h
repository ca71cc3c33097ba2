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

// Returns random images and labels, as PyTorch's model-parallel tutorial uses
// them; every variant gets the same batches.
std::vector<TrainingBatch> SyntheticBatches(const Settings& settings);

// Makes the model of each variant in turn, warms it up, and measures the
// repeats. Shows progress. `details` are added to every measurement.
using MakeTrainable =
    std::function<absl::StatusOr<std::unique_ptr<Trainable>>(const Variant&)>;
absl::StatusOr<std::vector<Measurement>> RunExperiment(
    const Settings& settings, const MakeTrainable& make,
    const std::vector<Detail>& details = {});

}  // namespace baton::examples
