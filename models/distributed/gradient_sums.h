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

// Gradients of parameters, summed over micro-batches: one launch a micro-batch
// and not one a parameter. Sums of several bf16 or f16 gradients are f32.
// Thread-compatible.
class GradientSums {
 public:
  // Takes over what nobody else holds. `last`: no more follow the first.
  void Add(LeafGradients gradients, bool last);
  // The sum of one leaf, which is left without; undefined where there is none.
  Gradient TakeOf(const Variable& leaf);
  // The sum of each leaf, in the order in which they first came; none are left.
  LeafGradients Take();
  // Gives each leaf its sum for a gradient.
  void Leave();

 private:
  std::vector<Variable> leaves_;
  std::vector<Gradient> sums_;  // one for each leaf
  std::unordered_map<const void*, size_t> places_;
};

}  // namespace baton::dist
