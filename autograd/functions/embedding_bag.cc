// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/embedding_bag.h"

#include "autograd/functions/function.h"

namespace baton::autograd {

Variable EmbeddingBag(const Variable& table, const Tensor& index,
                      const Tensor& offsets, const Variable& weights,
                      const ops::EmbeddingBagOptions& options) {
  const ops::EmbeddingBagResult result = ops::EmbeddingBag(
      table.tensor(), index, offsets, weights.tensor(), options);
  const int64_t rows = table.dim(0);
  // The weights' gradient needs the table, that of the table only its size.
  const bool trains_weights = weights.defined() && weights.requires_grad();
  return RecordJoint(
      "embedding_bag", result.y,
      {index, result.bags, result.scale, result.rows, weights.tensor(),
       trains_weights ? table.tensor() : Tensor()},
      {table, weights},
      [options, rows](const Backprop& p) {
        const ops::EmbeddingBagResult forward = {Tensor(), p.saved(1),
                                                 p.saved(2), p.saved(3)};
        Tensors grads(2);
        if (p.needs(0)) {
          grads[0] = ops::EmbeddingBagBackward(p.dy(), p.saved(0), p.saved(4),
                                               forward, rows, options);
        }
        if (p.needs(1)) {
          grads[1] = ops::EmbeddingBagBackwardWeights(
              p.dy(), p.saved(5), p.saved(0), forward, options);
        }
        return grads;
      },
      GradientParts::kApart);
}

}  // namespace baton::autograd
