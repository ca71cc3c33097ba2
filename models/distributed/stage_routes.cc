// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_routes.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

std::string ToString(const StageRoute& route) {
  const std::string from =
      route.from == kBatch
          ? absl::StrCat("input ", route.output, " of the batch")
          : absl::StrCat("output ", route.output, " of stage ", route.from);
  return absl::StrCat("a route from ", from, " to input ", route.input,
                      " of stage ", route.to);
}

}  // namespace

absl::Status CheckRoutes(const std::vector<StageRoute>& routes, int stages) {
  std::set<std::pair<int, int>> inputs;
  for (const StageRoute& route : routes) {
    const auto wrong = [&](const std::string& why) {
      return absl::InvalidArgumentError(
          absl::StrCat(ToString(route), " ", why));
    };
    if (route.to < 0 || route.to >= stages || route.from < kBatch)
      return wrong(absl::StrCat("leads out of the ", stages, " stages"));
    if (route.from >= route.to)
      return wrong("leads backwards: values go to stages behind");
    if (route.output < 0 || route.input < 0)
      return wrong("has a negative number");
    if (!inputs.emplace(route.to, route.input).second)
      return wrong("is the second to that input");
  }
  return absl::OkStatus();
}

StageWiring::StageWiring(int stage, int stages,
                         const std::vector<StageRoute>& routes)
    : stage_(stage) {
  for (const StageRoute& route : routes) {
    if (route.to == stage)
      inputs_.push_back({route.from, static_cast<size_t>(route.input)});
    if (route.from == stage)
      outputs_.push_back({route.to, static_cast<size_t>(route.output)});
  }
  if (stage != kBatch) sources_ = Others(inputs_, stage - 1);
  if (stage + 1 < stages) targets_ = Others(outputs_, stage + 1);
}

std::vector<int> StageWiring::Others(const std::vector<End>& ends,
                                     int neighbour) {
  std::set<int> others = {neighbour};
  for (const End& end : ends) others.insert(end.other);
  return {others.begin(), others.end()};
}

// For the neighbor, values that no route names come first.
std::vector<size_t> StageWiring::Places(const std::vector<End>& ends, int other,
                                        int neighbour, size_t count) {
  std::vector<size_t> places;
  for (size_t i = 0; other == neighbour && i < count; ++i) {
    if (std::none_of(ends.begin(), ends.end(),
                     [i](const End& end) { return end.place == i; }))
      places.push_back(i);
  }
  for (const End& end : ends) {
    if (end.other == other) places.push_back(end.place);
  }
  return places;
}

void StageWiring::CheckPlaces(const std::vector<End>& ends, size_t count,
                              const char* what) {
  for (const End& end : ends) {
    Require(end.place < count, "route", "a route names ", what, " ", end.place,
            ", counted from 0, where there ", count == 1 ? "is " : "are ",
            count);
  }
}

std::vector<size_t> StageWiring::InputsFrom(int source, size_t count) const {
  CheckPlaces(inputs_, count, "input");
  return Places(inputs_, source, stage_ - 1, count);
}

std::vector<size_t> StageWiring::OutputsTo(int target, size_t count) const {
  CheckPlaces(outputs_, count,
              stage_ == kBatch ? "the batch's input" : "output");
  return Places(outputs_, target, stage_ + 1, count);
}

Values StageWiring::Join(Parcels parcels) const {
  size_t count = 0;
  for (const auto& [source, values] : parcels) count += values.size();
  Values inputs(count);
  for (auto& [source, values] : parcels) {
    const std::vector<size_t> places = InputsFrom(source, count);
    Require(places.size() == values.size(), "route", values.size(),
            " values came from stage ", source, ", where routes lead to ",
            places.size());
    for (size_t i = 0; i < places.size(); ++i)
      inputs[places[i]] = std::move(values[i]);
  }
  return inputs;
}

Parcels StageWiring::Split(const Values& outputs) const {
  Parcels parcels;
  for (int target : targets_) {
    Values& parcel = parcels[target];
    for (size_t place : OutputsTo(target, outputs.size()))
      parcel.push_back(outputs[place]);
  }
  return parcels;
}

}  // namespace baton::dist
