// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/embedding_bag.h"

// Like core/cpu/embedding_bag.h, but indices need not be in range: those that
// are not count as rows of NaN.
namespace baton::cuda {

void EmbeddingBag(const ops::EmbeddingBagResult& result, const Tensor& table,
                  const Tensor& index, const Tensor& offsets,
                  const Tensor& weights,
                  const ops::EmbeddingBagOptions& options);

}  // namespace baton::cuda
