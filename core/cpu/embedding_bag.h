// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/embedding_bag.h"

// Fills in the tensors of `result`, which are allocated and dense. index [L] is
// in range; offsets [B] may be undefined if all bags have the same size;
// weights [L] may be undefined. A bag without rows gets the scale 0 and, for
// kMax, row 0.
namespace baton::cpu {

void EmbeddingBag(const ops::EmbeddingBagResult& result, const Tensor& table,
                  const Tensor& index, const Tensor& offsets,
                  const Tensor& weights,
                  const ops::EmbeddingBagOptions& options);

}  // namespace baton::cpu
