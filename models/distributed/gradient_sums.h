// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/node.h"
#include "autograd/variable.h"

namespace baton::dist {

using LeafGradients = std::vector<std::pair<Variable, Gradient>>;
using DeferredGradients =
    std::vector<std::pair<Variable, autograd::DeferredGradient>>;

// Sums parameters' gradients over micro-batches, with one kernel launch per
// micro-batch instead of one per parameter. Sums of several bf16 or f16
// gradients are f32. Thread-compatible.
class GradientSums {
 public:
  // Adds gradients; reuses the memory of those that are not shared. `last`: if
  // these are the first, no more follow.
  void Add(LeafGradients gradients, bool last);
  // Removes and returns the sum of one leaf; undefined if it has none.
  Gradient TakeOf(const Variable& leaf);
  // Removes and returns all sums, in the order in which the leaves first came.
  LeafGradients Take();
  // Sets each leaf's gradient to its sum.
  void Leave();

 private:
  std::vector<Variable> leaves_;
  std::vector<Gradient> sums_;  // one for each leaf
  std::unordered_map<const void*, size_t> places_;
};

}  // namespace baton::dist
