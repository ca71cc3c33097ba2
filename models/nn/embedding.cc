// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/embedding.h"

#include "autograd/functions/indexing.h"

namespace baton::nn {

Embedding::Embedding(int64_t rows, int64_t width, Generator& generator)
    : weight_(RegisterParameter("weight", Tensor::Empty({rows, width}))) {
  FillNormal(weight_.tensor(), 0, 1, generator);
}

Variable Embedding::Forward(const Variable& x) {
  return autograd::Embedding(weight_, x.tensor());
}

}  // namespace baton::nn
