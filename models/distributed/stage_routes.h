// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor.h"

// The routes of values between the stages of a pipeline.
namespace baton::dist {

// The values that a stage takes, returns, or sends to another for one
// micro-batch. Gradients of values that are not used may be undefined.
using Values = std::vector<Tensor>;
// Values by the stage that they come from or go to.
using Parcels = std::map<int, Values>;

// What a stage sends to another for one micro-batch. Plain data.
struct Outputs {
  Values values{};
  // Places of the floating values that depend on no parameter, such as masks:
  // their gradients are neither computed nor sent back.
  std::vector<int32_t> constants{};
  static constexpr auto Fields() {
    return std::tuple{&Outputs::values, &Outputs::constants};
  }
};
// Outputs by the stage that they come from or go to.
using OutputsOfStages = std::map<int, Outputs>;

// Stands for the batch where a stage is expected as a source.
inline constexpr int32_t kBatch = -1;

// Connects an output of one stage, or an input of the batch, to an input of a
// later stage; all are counted from 0. The value goes there directly, and its
// gradient comes directly back. Plain data.
//
// A pipeline without routes is a chain: all outputs of a stage are the inputs
// of the next, in order, and the batch is the input of the first. An output
// that routes name goes only where they say, and an input that a route names
// comes only from there; all others pass along the chain, in order. For
// example, if the first of three stages returns one value for both others:
//
//   {{.from = 0, .output = 0, .to = 1, .input = 0},
//    {.from = 0, .output = 0, .to = 2, .input = 1}}
//
// If it returns two values, and only the third stage uses the second:
//
//   {{.from = 0, .output = 1, .to = 2, .input = 1}}
struct StageRoute {
  int32_t from = 0;
  int32_t output = 0;
  int32_t to = 0;
  int32_t input = 0;
  static constexpr auto Fields() {
    return std::tuple{&StageRoute::from, &StageRoute::output, &StageRoute::to,
                      &StageRoute::input};
  }
};

// Returns InvalidArgument, which names a route that leads backwards, to no
// stage, or to an input that another route already has.
absl::Status CheckRoutes(const std::vector<StageRoute>& routes, int stages);

// What valid routes mean for one of `stages`, or for kBatch. Immutable.
class StageWiring {
 public:
  StageWiring(int stage, int stages, const std::vector<StageRoute>& routes);

  // Returns the stages that its inputs come from, ascending: the one before it,
  // which may be kBatch, and those that routes name. Empty for kBatch.
  const std::vector<int>& sources() const { return sources_; }
  // Returns the stages that its outputs go to, ascending. Empty for the last
  // stage.
  const std::vector<int>& targets() const { return targets_; }

  // Returns which of the stage's `count` inputs come from that source, in the
  // order in which they travel. This and the methods below throw Error if a
  // route names an input or output that there is not.
  std::vector<size_t> InputsFrom(int source, size_t count) const;
  // As InputsFrom, for the stage's outputs.
  std::vector<size_t> OutputsTo(int target, size_t count) const;

  // Returns the stage's inputs, given what came from each source.
  Values Join(Parcels parcels) const;
  // Returns the outputs that go to each target.
  Parcels Split(const Values& outputs) const;

 private:
  // This stage's end of a route.
  struct End {
    int other;  // stage
    size_t place;
  };
  static std::vector<int> Others(const std::vector<End>& ends, int neighbour);
  static void CheckPlaces(const std::vector<End>& ends, size_t count,
                          const char* what);
  static std::vector<size_t> Places(const std::vector<End>& ends, int other,
                                    int neighbour, size_t count);

  const int stage_;
  std::vector<End> inputs_, outputs_;
  std::vector<int> sources_, targets_;
};

}  // namespace baton::dist
