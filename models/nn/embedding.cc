// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/embedding.h"

#include "core/status.h"

namespace baton::nn {

Embedding::Embedding(int64_t rows, int64_t width, Generator& generator,
                     const autograd::EmbeddingOptions& options)
    : weight_(RegisterParameter("weight", Tensor::Empty({rows, width}))),
      options_(options) {
  FillNormal(weight_.tensor(), 0, 1, generator);
  if (!options.padding) return;
  const int64_t row = *options.padding;
  Require(row >= -rows && row < rows, "embedding", "padding row ", row,
          " is not among ", rows);
  weight_.tensor().Select(0, row < 0 ? row + rows : row).Fill(0);
}

Variable Embedding::Forward(const Variable& x) {
  return autograd::Embedding(weight_, x.tensor(), options_);
}

}  // namespace baton::nn
