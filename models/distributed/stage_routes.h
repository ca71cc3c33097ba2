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

// Which values pass between the stages of a pipeline.
namespace baton::dist {

// What a stage takes, gives, or sends to another for one micro-batch. Those of
// gradients may be undefined, where a value is not used.
using Values = std::vector<Tensor>;
// By the stage that they come from or go to.
using Parcels = std::map<int, Values>;

// What a stage gives another for one micro-batch. Plain data.
struct Outputs {
  Values values{};
  // Places of the floating ones that lead to no parameter, such as masks: their
  // gradients are neither computed nor sent back.
  std::vector<int32_t> constants{};
  static constexpr auto Fields() {
    return std::tuple{&Outputs::values, &Outputs::constants};
  }
};
// By the stage that they come from or go to.
using OutputsOfStages = std::map<int, Outputs>;

// The batch, where values come from stages.
inline constexpr int32_t kBatch = -1;

// An output of one stage, or an input of the batch, that is an input of a stage
// behind it, all counted from 0. It goes there straight, and its gradient comes
// straight back. Plain data.
//
// A pipeline without routes is a chain: all outputs of a stage are the inputs
// of the next, in order, and the batch is the first one's input. An output that
// routes name goes only where they say, and an input that a route names comes
// only from there; all others pass along the chain, in order. So the first of
// three stages, which gives one value to both others, has
//
//   {{.from = 0, .output = 0, .to = 1, .input = 0},
//    {.from = 0, .output = 0, .to = 2, .input = 1}}
//
// and one that gives two, of which only the third stage wants the second,
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

// InvalidArgument names the route that leads backwards, to no stage or to an
// input that another has already.
absl::Status CheckRoutes(const std::vector<StageRoute>& routes, int stages);

// What routes that are right come to for one of `stages`, or for kBatch.
// Immutable.
class StageWiring {
 public:
  StageWiring(int stage, int stages, const std::vector<StageRoute>& routes);

  // Where its inputs come from: the one before it, which may be kBatch, and
  // what routes name, ascending. None of kBatch.
  const std::vector<int>& sources() const { return sources_; }
  // Where its outputs go, likewise. None of the last stage.
  const std::vector<int>& targets() const { return targets_; }

  // Which of its inputs, of which there are so many, come from that source, in
  // the order in which they travel. Throws Error where a route names another
  // input than these, as do those below.
  std::vector<size_t> InputsFrom(int source, size_t count) const;
  // Likewise of its outputs.
  std::vector<size_t> OutputsTo(int target, size_t count) const;

  // Its inputs, from what came of each source.
  Values Join(Parcels parcels) const;
  // The parts of its outputs that go to each target.
  Parcels Split(const Values& outputs) const;

 private:
  // The end of a route that is here.
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
