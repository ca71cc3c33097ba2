// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Models that can be cut into stages are lists of named units, in the order of
// their forward: "stem", "layer1.0", ..., "head".
namespace baton::models {

// The units of stage `index` of the cuts.size() + 1 stages. A cut names what a
// stage ends after: a unit, or all units whose names it begins, up to a dot, so
// "layer2" stands for "layer2.3" where that is the last such. InvalidArgument,
// led by `model`, for cuts that are unknown, out of order or leave a stage
// empty, and for an index that is no stage's.
absl::StatusOr<std::vector<std::string>> UnitsOfStage(
    const std::string& model, const std::vector<std::string>& units,
    const std::vector<std::string>& cuts, int index);

// The seed of a unit's own generator: with one for each, a stage needs no draws
// of the units that it lacks, and the stages together equal the whole model.
uint64_t UnitSeed(uint64_t seed, const std::string& unit);

}  // namespace baton::models
