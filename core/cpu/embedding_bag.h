// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/embedding_bag.h"

// Fills in `result`, whose tensors are there, dense: index [L] in range,
// offsets [B] or, where bags have equally many, undefined, weights [L] or
// undefined. A bag without rows has the scale 0 and, of kMax, row 0.
namespace baton::cpu {

void EmbeddingBag(const ops::EmbeddingBagResult& result, const Tensor& table,
                  const Tensor& index, const Tensor& offsets,
                  const Tensor& weights,
                  const ops::EmbeddingBagOptions& options);

}  // namespace baton::cpu
