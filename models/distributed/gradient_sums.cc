// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/gradient_sums.h"

#include "autograd/accumulate.h"
#include "core/ops/multi_tensor.h"

namespace baton::dist {
namespace {

Tensor F32Like(const Tensor& x) {
  return Tensor::Empty(x.shape(), {.dtype = DType::kF32,
                                   .device = x.device(),
                                   .format = x.SuggestFormat()});
}

}  // namespace

void GradientSums::Add(LeafGradients gradients, bool last) {
  std::vector<Tensor> sums, addends;  // sums[i] += addends[i]
  std::vector<Tensor> wide, low;      // wide[i] = low[i]
  for (auto& [leaf, gradient] : gradients) {
    const auto [place, first] = places_.try_emplace(leaf.id(), leaves_.size());
    if (!first) {
      sums.push_back(sums_[place->second]);
      addends.push_back(std::move(gradient));
      continue;
    }
    leaves_.push_back(leaf);
    if (!last && IsHalf(gradient.dtype())) {
      wide.push_back(F32Like(gradient));
      low.push_back(std::move(gradient));
      sums_.push_back(wide.back());
    } else if (last || autograd::IsExclusive(gradient)) {
      sums_.push_back(std::move(gradient));
    } else {
      sums_.push_back(gradient.Clone());
    }
  }
  ops::CastMany(wide, low);
  ops::AddIntoMany(sums, addends);
}

LeafGradients GradientSums::Take() {
  LeafGradients all;
  for (size_t i = 0; i < leaves_.size(); ++i)
    all.emplace_back(std::move(leaves_[i]), std::move(sums_[i]));
  leaves_.clear();
  sums_.clear();
  places_.clear();
  return all;
}

void GradientSums::Leave() {
  for (auto& [leaf, sum] : Take()) leaf.set_grad(std::move(sum));
}

}  // namespace baton::dist
