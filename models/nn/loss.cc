// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/loss.h"

#include <vector>

#include "core/ops/reduce.h"

namespace baton::nn {

int64_t CountCorrect(const Tensor& logits, const Tensor& labels) {
  Require(logits.rank() == 2 && labels.rank() == 1 &&
              logits.dim(0) == labels.dim(0),
          "count_correct", "expected logits [N, C] and labels [N], got ",
          logits.shape().ToString(), " and ", labels.shape().ToString());
  const std::vector<int64_t> best = ops::ArgMax(logits, 1).ToVector<int64_t>();
  const std::vector<int64_t> wanted = labels.ToVector<int64_t>();
  int64_t correct = 0;
  for (size_t i = 0; i < wanted.size(); ++i) correct += best[i] == wanted[i];
  return correct;
}

}  // namespace baton::nn
