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

// Returns the paths that a link between two workers can have (dist::PathTo).
std::vector<std::string> KnownPaths();

// Adds the present paths of the model's links to the measurement's details.
// Call it after steps. FailedPrecondition names a link between workers whose
// path is not among those that the settings require, and says what to do.
absl::Status AddPaths(const PipelineSettings& settings, const Trainable& model,
                      Measurement& measurement);

}  // namespace baton::examples
