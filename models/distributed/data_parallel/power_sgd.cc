// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/power_sgd.h"

#include <utility>

#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/orthonormal.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "models/distributed/data_parallel/gradient_buckets.h"

namespace baton::dist {
namespace {

// In one call for each dtype, as the thin matrices of gradients in half
// precision are f32.
BucketReduction ReduceTogether(rpc::ProcessGroup& group,
                               const std::vector<Tensor>& tensors) {
  BucketReduction reduction;
  std::vector<Future<void>> calls;
  for (const std::vector<size_t>& kind : PlacesByKind(tensors)) {
    std::vector<Tensor> alike;
    for (const size_t i : kind) {
      alike.push_back(tensors[i]);
      reduction.bytes += static_cast<int64_t>(tensors[i].nbytes());
    }
    calls.push_back(group.AllReduceMany(alike, rpc::ReduceOp::kMean));
  }
  reduction.call = WaitAll(calls);
  return reduction;
}

// Columns of zeros would remain zero, so they start anew.
Tensor Revived(const Tensor& right, const Tensor& start) {
  const Tensor squares = ops::Sum(ops::Mul(right, right), {0}, true);
  return ops::Where(ops::Equal(squares, Tensor::ZerosLike(squares)), start,
                    right);
}

}  // namespace

PowerSgd::PowerSgd(const std::vector<Variable>& parameters, int rank)
    : states_(parameters.size()) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& tensor = parameters[i].tensor();
    if (tensor.rank() < 2) continue;
    const DType dtype = IsHalf(tensor.dtype()) ? DType::kF32 : tensor.dtype();
    const int64_t rows = tensor.dim(0), columns = tensor.numel() / rows;
    if (static_cast<size_t>((rows + columns) * rank) * SizeOf(dtype) >=
        tensor.nbytes())
      continue;
    Generator generator(i);
    State& state = states_[i];
    state.start =
        RandNormal({columns, rank}, generator).To(dtype).To(tensor.device());
    state.right = state.start.Clone();
    state.lost = Tensor::Zeros({rows, columns},
                               {.dtype = dtype, .device = tensor.device()});
  }
}

Tensor PowerSgd::AsMatrix(const Tensor& gradient) {
  const int64_t rows = gradient.dim(0), columns = gradient.numel() / rows;
  return Tensor::FromStorage(gradient.storage(), gradient.dtype(),
                             {rows, columns}, {columns, 1}, gradient.offset());
}

BucketReduction PowerSgd::Reduce(rpc::ProcessGroup& group,
                                 const GradientBucket& bucket) {
  Thin thin;
  std::vector<Tensor> sent;  // those that stay as they are come first
  for (size_t i = 0; i < bucket.parameters.size(); ++i) {
    const State& state = states_[bucket.parameters[i]];
    if (!state.right.defined()) {
      sent.push_back(bucket.gradients[i]);
      continue;
    }
    const Tensor gradient = AsMatrix(bucket.gradients[i]);
    const Tensor matrix = gradient.To(state.lost.dtype());
    ops::AddInto(matrix, state.lost);
    thin.parameters.push_back(bucket.parameters[i]);
    thin.gradients.push_back(gradient);
    thin.sums.push_back(matrix);
    thin.lefts.push_back(
        ops::Matmul(matrix, Revived(state.right, state.start)));
  }
  sent.insert(sent.end(), thin.lefts.begin(), thin.lefts.end());
  BucketReduction reduction = ReduceTogether(group, sent);
  reduction.then = [this, &group, thin = std::move(thin)] {
    return ReduceRights(group, thin);
  };
  return reduction;
}

BucketReduction PowerSgd::ReduceRights(rpc::ProcessGroup& group, Thin thin) {
  for (size_t i = 0; i < thin.lefts.size(); ++i) {
    const Tensor& left = thin.lefts[i];
    ops::OrthonormaliseColumns(left);
    thin.rights.push_back(ops::Matmul(thin.sums[i].Transpose(0, 1), left));
  }
  BucketReduction reduction = ReduceTogether(group, thin.rights);
  reduction.then = [this, thin = std::move(thin)] {
    Finish(thin);
    return BucketReduction();
  };
  return reduction;
}

void PowerSgd::Finish(const Thin& thin) {
  for (size_t i = 0; i < thin.parameters.size(); ++i) {
    const State& state = states_[thin.parameters[i]];
    const Tensor& gradient = thin.gradients[i];
    const Tensor& right = thin.rights[i];
    state.right.CopyFrom(right);
    state.lost.CopyFrom(thin.sums[i]);
    gradient.CopyFrom(ops::Matmul(thin.lefts[i], right.Transpose(0, 1)));
    // What rounding takes from a gradient of half precision is lost, too.
    ops::AddInto(state.lost, gradient.To(state.lost.dtype()), -1);
  }
}

}  // namespace baton::dist
