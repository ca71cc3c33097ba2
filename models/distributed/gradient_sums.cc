// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/gradient_sums.h"

#include <utility>

#include "autograd/accumulate.h"
#include "core/ops/multi_tensor.h"

namespace baton::dist {
namespace {

Tensor F32Like(const Tensor& x) {
  return Tensor::Empty(x.shape(), {.dtype = DType::kF32,
                                   .device = x.device(),
                                   .format = x.SuggestFormat()});
}

// sums[i] += addends[i], each sum once.
struct Launch {
  std::vector<Tensor> sums, addends;
};

}  // namespace

// A weight that is a stage's parameter and goes to another stage, too, has two
// gradients of a micro-batch. One launch must not add both to their sum: its
// threads would not see each other's.
void GradientSums::Add(LeafGradients gradients, bool last) {
  std::vector<Launch> launches;
  std::vector<size_t> launched(sums_.size());  // of each leaf
  std::vector<Tensor> wide, low;               // wide[i] = low[i]
  LeafGradients one_by_one;                    // sums that contain rows
  for (auto& [leaf, gradient] : gradients) {
    const auto [place, first] = places_.try_emplace(leaf.id(), leaves_.size());
    if (first) {
      leaves_.push_back(leaf);
      sums_.emplace_back();
      launched.push_back(0);
    }
    Gradient& sum = sums_[place->second];
    if (gradient.is_rows() || sum.is_rows()) {
      one_by_one.emplace_back(leaf, std::move(gradient));
    } else if (sum.defined()) {
      const size_t number = launched[place->second]++;
      if (number == launches.size()) launches.emplace_back();
      launches[number].sums.push_back(sum.values());
      launches[number].addends.push_back(gradient.values());
    } else if (!last && IsHalf(gradient.dtype())) {
      wide.push_back(F32Like(gradient.values()));
      low.push_back(gradient.values());
      sum = wide.back();
    } else if (last || autograd::IsExclusive(gradient.values())) {
      sum = std::move(gradient);
    } else {
      sum = gradient.values().Clone();
    }
  }
  ops::CastMany(wide, low);
  for (const Launch& launch : launches)
    ops::AddIntoMany(launch.sums, launch.addends);
  launches.clear();  // so that the sums' storage is not shared
  for (auto& [leaf, gradient] : one_by_one)
    autograd::AddGradient(sums_[places_.at(leaf.id())], std::move(gradient));
}

Gradient GradientSums::TakeOf(const Variable& leaf) {
  const auto found = places_.find(leaf.id());
  return found == places_.end() ? Gradient()
                                : std::exchange(sums_[found->second], {});
}

LeafGradients GradientSums::Take() {
  LeafGradients all;
  for (size_t i = 0; i < leaves_.size(); ++i)
    if (sums_[i].defined())
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
