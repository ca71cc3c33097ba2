// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/embedding_bag.h"
#include "core/random.h"
#include "models/nn/module.h"

namespace baton::nn {

// Rows of a table by bags of numbers, each bag summed, averaged or its greatest
// (core/ops/embedding_bag.h). Parameter "weight" [rows, width], normal(0, 1) at
// first, 0 in the padding's row, whose gradient is 0; with `sparse` the
// gradient is rows, as nn::Embedding's. Thread-compatible.
class EmbeddingBag final : public Module {
 public:
  // Throws Error for a padding index outside of the rows.
  EmbeddingBag(int64_t rows, int64_t width, Generator& generator,
               const ops::EmbeddingBagOptions& options = {});
  // Bags of equally many: x i64 [B, n] -> [B, width].
  Variable Forward(const Variable& x) override;
  // x i64 [L] with offsets i64 [B], or [B, n] without -> [B, width]; `weights`
  // of x's shape are the factors of a sum.
  Variable Run(const Variable& x, const Tensor& offsets,
               const Variable& weights = Variable());

  const Variable& weight() const { return weight_; }

 private:
  const ops::EmbeddingBagOptions options_;
  Variable& weight_;
};

}  // namespace baton::nn
