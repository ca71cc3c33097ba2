// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/units.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"

namespace baton::models {
namespace {

// Returns the index of the first unit after `cut`.
absl::StatusOr<size_t> EndOf(const std::string& model, const std::string& cut,
                             const std::vector<std::string>& units) {
  for (size_t i = units.size(); i-- > 0;) {
    if (units[i] == cut || absl::StartsWith(units[i], cut + ".")) return i + 1;
  }
  return absl::InvalidArgumentError(absl::StrCat(model, ": no place '", cut,
                                                 "' to cut at; there are ",
                                                 absl::StrJoin(units, ", ")));
}

// Stage i holds the units [bounds[i], bounds[i + 1]).
absl::StatusOr<std::vector<size_t>> Bounds(
    const std::string& model, const std::vector<std::string>& units,
    const std::vector<std::string>& cuts) {
  std::vector<size_t> bounds = {0};
  for (const std::string& cut : cuts) {
    ASSIGN_OR_RETURN(const size_t end, EndOf(model, cut, units));
    if (end <= bounds.back() || end == units.size())
      return absl::InvalidArgumentError(
          absl::StrCat(model, ": cutting at '", cut, "' of ",
                       absl::StrJoin(cuts, ","), " leaves a stage empty"));
    bounds.push_back(end);
  }
  bounds.push_back(units.size());
  return bounds;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> UnitsOfStage(
    const std::string& model, const std::vector<std::string>& units,
    const std::vector<std::string>& cuts, int index) {
  ASSIGN_OR_RETURN(const std::vector<size_t> bounds,
                   Bounds(model, units, cuts));
  if (index < 0 || static_cast<size_t>(index) + 1 >= bounds.size())
    return absl::InvalidArgumentError(
        absl::StrCat(model, ": no stage ", index, " of ", bounds.size() - 1));
  const auto begin = units.begin();
  return std::vector<std::string>(
      begin + static_cast<ptrdiff_t>(bounds[static_cast<size_t>(index)]),
      begin + static_cast<ptrdiff_t>(bounds[static_cast<size_t>(index) + 1]));
}

uint64_t UnitSeed(uint64_t seed, const std::string& unit) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;  // FNV-1a
  for (const char c : unit) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace baton::models
