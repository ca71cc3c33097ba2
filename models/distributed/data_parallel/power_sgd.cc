// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/power_sgd.h"

#include <utility>

#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/orthonormal.h"
#include "core/ops/reduce.h"
#include "core/random.h"

namespace baton::dist {
namespace {

// Columns of zeros would remain zero, so they start anew.
Tensor Revived(const Tensor& right, const Tensor& start) {
  const Tensor squares = ops::Sum(ops::Mul(right, right), {0}, true);
  return ops::Where(ops::Equal(squares, Tensor::ZerosLike(squares)), start,
                    right);
}

}  // namespace

PowerSgd::PowerSgd(const std::vector<Variable>& parameters, int rank,
                   std::shared_ptr<rpc::ProcessGroup> group)
    : group_(std::move(group)), states_(parameters.size()) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& tensor = parameters[i].tensor();
    if (tensor.rank() < 2 || IsHalf(tensor.dtype())) continue;
    const int64_t rows = tensor.dim(0), columns = tensor.numel() / rows;
    if ((rows + columns) * rank >= rows * columns) continue;
    Generator generator(i);
    State& state = states_[i];
    state.start = RandNormal({columns, rank}, generator)
                      .To(tensor.dtype())
                      .To(tensor.device());
    state.right = state.start.Clone();
    state.lost = Tensor::Zeros(
        {rows, columns}, {.dtype = tensor.dtype(), .device = tensor.device()});
  }
}

Tensor PowerSgd::AsMatrix(const Tensor& gradient) {
  const int64_t rows = gradient.dim(0), columns = gradient.numel() / rows;
  return Tensor::FromStorage(gradient.storage(), gradient.dtype(),
                             {rows, columns}, {columns, 1}, gradient.offset());
}

PowerSgd::Travelling PowerSgd::Begin(const std::vector<size_t>& parameters,
                                     const std::vector<Tensor>& gradients) {
  Travelling travelling;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const State& state = states_[parameters[i]];
    if (!state.right.defined()) {
      travelling.whole.push_back(gradients[i]);
      continue;
    }
    const Tensor matrix = AsMatrix(gradients[i]);
    ops::AddInto(matrix, state.lost);
    travelling.thin.push_back(parameters[i]);
    travelling.gradients.push_back(matrix);
    travelling.lefts.push_back(
        ops::Matmul(matrix, Revived(state.right, state.start)));
  }
  std::vector<Tensor> all = travelling.whole;
  all.insert(all.end(), travelling.lefts.begin(), travelling.lefts.end());
  for (const Tensor& each : all)
    travelling.bytes += static_cast<int64_t>(each.nbytes());
  travelling.call = group_->AllReduceMany(all, rpc::ReduceOp::kMean);
  return travelling;
}

void PowerSgd::Continue(Travelling& travelling) {
  std::vector<Tensor> rights;
  for (size_t i = 0; i < travelling.thin.size(); ++i) {
    const Tensor& left = travelling.lefts[i];
    ops::OrthonormaliseColumns(left);
    rights.push_back(
        ops::Matmul(travelling.gradients[i].Transpose(0, 1), left));
    travelling.bytes += static_cast<int64_t>(rights.back().nbytes());
  }
  travelling.call = group_->AllReduceMany(rights, rpc::ReduceOp::kMean);
  travelling.rights = std::move(rights);
}

void PowerSgd::Finish(const Travelling& travelling) {
  for (size_t i = 0; i < travelling.thin.size(); ++i) {
    const State& state = states_[travelling.thin[i]];
    const Tensor& matrix = travelling.gradients[i];
    const Tensor& right = travelling.rights[i];
    const Tensor mean = ops::Matmul(travelling.lefts[i], right.Transpose(0, 1));
    state.right.CopyFrom(right);
    state.lost.CopyFrom(matrix);
    ops::AddInto(state.lost, mean, -1);
    matrix.CopyFrom(mean);
  }
}

}  // namespace baton::dist
