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

// Returns the units of stage `index` of the cuts.size() + 1 stages. A cut names
// what a stage ends after: a unit, or a prefix of unit names up to a dot, so
// that "layer2" means "layer2.3" if that is the last one. Returns
// InvalidArgument, led by `model`, for cuts that are unknown, out of order or
// leave a stage empty, and for an invalid index.
absl::StatusOr<std::vector<std::string>> UnitsOfStage(
    const std::string& model, const std::vector<std::string>& units,
    const std::vector<std::string>& cuts, int index);

// Returns the seed of a unit's own generator. With one generator per unit, a
// stage need not draw for the units that it lacks, and the stages together
// equal the whole model.
uint64_t UnitSeed(uint64_t seed, const std::string& unit);

}  // namespace baton::models
