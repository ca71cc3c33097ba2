// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/functions/indexing.h"
#include "core/random.h"
#include "models/nn/module.h"

namespace baton::nn {

// Looks up rows of a table by index: x i64 [...] -> [..., width]. Parameter
// "weight" [rows, width], normal(0, 1) at first; the padding row, if options
// name one, is 0 and stays so. With `sparse` the gradient consists of the rows
// that were looked up (autograd/gradient.h), for optimizers that step rows:
// Sgd, Adagrad and SparseAdam. Thread-compatible.
class Embedding final : public Module {
 public:
  // Throws Error if the padding row is out of range.
  Embedding(int64_t rows, int64_t width, Generator& generator,
            const autograd::EmbeddingOptions& options = {});
  Variable Forward(const Variable& x) override;

  const Variable& weight() const { return weight_; }

 private:
  Variable& weight_;
  const autograd::EmbeddingOptions options_;
};

}  // namespace baton::nn
