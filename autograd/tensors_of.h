// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "autograd/variable.h"

namespace baton {

// These return the tensor, or the gradient, of each variable, in order.
inline std::vector<Tensor> TensorsOf(const std::vector<Variable>& variables) {
  std::vector<Tensor> tensors;
  tensors.reserve(variables.size());
  for (const Variable& variable : variables)
    tensors.push_back(variable.tensor());
  return tensors;
}
inline std::vector<Tensor> GradientsOf(const std::vector<Variable>& variables) {
  std::vector<Tensor> gradients;
  gradients.reserve(variables.size());
  for (const Variable& variable : variables)
    gradients.push_back(variable.grad());
  return gradients;
}

}  // namespace baton
