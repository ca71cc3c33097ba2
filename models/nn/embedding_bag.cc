// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/embedding_bag.h"

#include "autograd/functions/embedding_bag.h"
#include "core/status.h"

namespace baton::nn {

EmbeddingBag::EmbeddingBag(int64_t rows, int64_t width, Generator& generator,
                           const ops::EmbeddingBagOptions& options)
    : options_(options),
      weight_(RegisterParameter("weight", Tensor::Empty({rows, width}))) {
  Require(options.padding_index < rows, "embedding_bag", "no row ",
          options.padding_index, " for padding in a table of ", rows);
  FillNormal(weight_.tensor(), 0, 1, generator);
  if (options.padding_index >= 0)
    weight_.tensor().Select(0, options.padding_index).Fill(0);
}

Variable EmbeddingBag::Forward(const Variable& x) { return Run(x, Tensor()); }

Variable EmbeddingBag::Run(const Variable& x, const Tensor& offsets,
                           const Variable& weights) {
  return autograd::EmbeddingBag(weight_, x.tensor(), offsets, weights,
                                options_);
}

}  // namespace baton::nn
