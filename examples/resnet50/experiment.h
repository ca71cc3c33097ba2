// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/resnet50/settings.h"
#include "examples/resnet50/trainable.h"
#include "examples/support/measurement.h"

namespace baton::examples {

// One row of the experiment.
struct Variant {
  std::string name = {};   // "single", "split", "pipelined 20"
  bool cut = false;        // over all stages, or whole on one worker
  int64_t split_size = 0;  // 0: not pipelined, or as micro_batches say
  // Images of each micro-batch; empty: of split_size.
  std::vector<int64_t> micro_batches = {};
  bool pipelined() const { return split_size > 0 || !micro_batches.empty(); }
};
std::vector<Variant> VariantsOf(const Settings& settings);

// Random images and labels: the tutorial's batches, the same for each variant.
std::vector<TrainingBatch> SyntheticBatches(const Settings& settings);

// Makes the model of each variant in turn, warms it up, then measures the
// repeats. Shows progress. `details`: what holds for all measurements.
using MakeTrainable =
    std::function<absl::StatusOr<std::unique_ptr<Trainable>>(const Variant&)>;
absl::StatusOr<std::vector<Measurement>> RunExperiment(
    const Settings& settings, const MakeTrainable& make,
    const std::vector<Detail>& details = {});

// Prints the table and the bubbles, then writes JSON lines and charts where
// they are wanted.
absl::Status Report(const Settings& settings, const std::string& title,
                    const std::vector<Measurement>& measurements);

}  // namespace baton::examples
