// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/embedding_bag.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void EmbeddingBag(const ops::EmbeddingBagResult&, const Tensor&, const Tensor&,
                  const Tensor&, const Tensor&,
                  const ops::EmbeddingBagOptions&) {
  FailWithoutCuda("embedding_bag");
}

}  // namespace baton::cuda
