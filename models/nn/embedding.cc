// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/embedding.h"

#include "autograd/functions/indexing.h"

namespace baton::nn {

Embedding::Embedding(int64_t rows, int64_t width, Generator& generator,
                     bool sparse)
    : weight_(RegisterParameter("weight", Tensor::Empty({rows, width}))),
      sparse_(sparse) {
  FillNormal(weight_.tensor(), 0, 1, generator);
}

Variable Embedding::Forward(const Variable& x) {
  return autograd::Embedding(weight_, x.tensor(), sparse_);
}

}  // namespace baton::nn
