// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "examples/support/measurement.h"
#include "examples/support/pipeline_settings.h"
#include "examples/support/trainable.h"

namespace baton::examples {

// Prints the table, the bubbles and the paths between stages; then writes JSON
// lines and charts if the settings ask for them.
absl::Status Report(const PipelineSettings& settings, const std::string& title,
                    const std::vector<Measurement>& measurements);

// Writes the schedule of the model's last step, if the settings ask for it and
// the step was a pipeline's.
absl::Status SaveSchedule(const PipelineSettings& settings,
                          const Trainable& model);

}  // namespace baton::examples
