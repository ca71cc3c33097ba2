// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/embedding_bag.h"

#include "autograd/functions/function.h"

namespace baton::autograd {
namespace {

ops::EmbeddingBagResult ForwardOf(const Backprop& p) {
  return {Tensor(), p.saved(1), p.saved(2), p.saved(3)};
}

}  // namespace

Variable EmbeddingBag(const Variable& table, const Tensor& index,
                      const Tensor& offsets, const Variable& weights,
                      const ops::EmbeddingBagOptions& options) {
  const ops::EmbeddingBagResult result = ops::EmbeddingBag(
      table.tensor(), index, offsets, weights.tensor(), options);
  const int64_t rows = table.dim(0);
  // The weights' gradient needs the table; the table's gradient needs only its
  // size.
  const bool trains_weights = weights.defined() && weights.requires_grad();
  RowsFormula of_rows = nullptr;
  if (options.sparse) {
    of_rows = [options, rows](const Backprop& p) {
      return Gradient(
          ops::EmbeddingBagBackwardRows(p.dy(), p.saved(0), p.saved(4),
                                        ForwardOf(p), rows, options),
          rows);
    };
  }
  return Record("embedding_bag", result.y,
                {index, result.bags, result.scale, result.rows,
                 weights.tensor(), trains_weights ? table.tensor() : Tensor()},
                {{table,
                  [options, rows](const Backprop& p) {
                    return ops::EmbeddingBagBackward(p.dy(), p.saved(0),
                                                     p.saved(4), ForwardOf(p),
                                                     rows, options);
                  },
                  nullptr, of_rows},
                 {weights, [options](const Backprop& p) {
                    return ops::EmbeddingBagBackwardWeights(
                        p.dy(), p.saved(5), p.saved(0), ForwardOf(p), options);
                  }}});
}

}  // namespace baton::autograd
