// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/embedding_bag.h"

// As in core/cpu/embedding_bag.h; indices need not be in range: what they would
// be is NaN.
namespace baton::cuda {

void EmbeddingBag(const ops::EmbeddingBagResult& result, const Tensor& table,
                  const Tensor& index, const Tensor& offsets,
                  const Tensor& weights,
                  const ops::EmbeddingBagOptions& options);

}  // namespace baton::cuda
