// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/multi_tensor.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void AddPairs(const std::vector<TensorPair>&) {
  FailWithoutCuda("add_into_many");
}
void CopyPairs(const std::vector<TensorPair>&) { FailWithoutCuda("cast_many"); }
void CopyPairsIf(const Tensor&, const std::vector<TensorPair>&) {
  FailWithoutCuda("copy_many_if");
}
void UnscalePairs(const std::vector<TensorPair>&, const Tensor&,
                  const Tensor&) {
  FailWithoutCuda("unscale_many");
}
Tensor SquareSums(const std::vector<Tensor>&) { FailWithoutCuda("square_sum"); }
void ZeroTensors(const std::vector<Tensor>&) { FailWithoutCuda("zero_many"); }

}  // namespace baton::cuda
