// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/embedding_bag.h"
#include "core/random.h"
#include "models/nn/module.h"

namespace baton::nn {

// Looks up rows of a table by bags of indices, and takes the sum, mean or
// maximum of each bag (core/ops/embedding_bag.h). Parameter "weight" [rows,
// width] is normal(0, 1) at first; the padding row is 0 and has a gradient of
// 0. With `sparse` the gradient consists of rows, as in nn::Embedding.
// Thread-compatible.
class EmbeddingBag final : public Module {
 public:
  // Throws Error for a padding index outside of the rows.
  EmbeddingBag(int64_t rows, int64_t width, Generator& generator,
               const ops::EmbeddingBagOptions& options = {});
  // Takes bags of equal size: x i64 [B, n] -> [B, width].
  Variable Forward(const Variable& x) override;
  // Takes x i64 [L] with offsets i64 [B], or x [B, n] without -> [B, width].
  // `weights`, of x's shape, are the factors of a sum.
  Variable Run(const Variable& x, const Tensor& offsets,
               const Variable& weights = Variable());

  const Variable& weight() const { return weight_; }

 private:
  const ops::EmbeddingBagOptions options_;
  Variable& weight_;
};

}  // namespace baton::nn
