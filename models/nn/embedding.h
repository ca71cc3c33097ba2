// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/random.h"
#include "models/nn/module.h"

namespace baton::nn {

// Rows of a table by number: x i64 [...] -> [..., width]. Parameter "weight"
// [rows, width], normal(0, 1) at first. `sparse`: its gradient is the rows that
// were looked up (autograd/gradient.h), for optimizers that step rows: Sgd,
// Adagrad and SparseAdam. Thread-compatible.
class Embedding final : public Module {
 public:
  Embedding(int64_t rows, int64_t width, Generator& generator,
            bool sparse = false);
  Variable Forward(const Variable& x) override;

  const Variable& weight() const { return weight_; }

 private:
  Variable& weight_;
  const bool sparse_;
};

}  // namespace baton::nn
