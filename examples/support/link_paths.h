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

// That a link between two workers can have (dist::PathTo).
std::vector<std::string> KnownPaths();

// Adds the paths of the model's links, as they are after its steps, to the
// measurement's details. FailedPrecondition where one between workers is not
// among those that the settings require: names the link and says what to do.
absl::Status AddPaths(const PipelineSettings& settings, const Trainable& model,
                      Measurement& measurement);

}  // namespace baton::examples
