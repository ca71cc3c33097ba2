// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/ops/embedding_bag.h"

namespace baton::autograd {

// Looks up rows of table [V, D] by bags of indices -> [B, D], see
// core/ops/embedding_bag.h; `offsets` and `weights` may be undefined.
Variable EmbeddingBag(const Variable& table, const Tensor& index,
                      const Tensor& offsets = Tensor(),
                      const Variable& weights = Variable(),
                      const ops::EmbeddingBagOptions& options = {});

}  // namespace baton::autograd
