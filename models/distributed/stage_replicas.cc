// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_replicas.h"

#include <utility>

#include "core/ops/multi_tensor.h"
#include "core/status.h"

namespace baton::dist {

StageReplicas::StageReplicas(const nn::Module& module, Group group)
    : group_(std::move(group)) {
  for (const Variable& parameter : module.Parameters())
    if (parameter.requires_grad()) parameters_.push_back(parameter);
}

StageReplicas::Made StageReplicas::Make(const nn::Module& module, Group group) {
  const absl::Status takes = group->Takes(module.device());
  if (!takes.ok()) return ReadyFuture<std::shared_ptr<StageReplicas>>(takes);
  std::vector<Future<void>> calls;
  for (const auto& [name, tensor] : module.StateDict())
    calls.push_back(group->Broadcast(tensor));
  // The sender of a broadcast does not learn of a receiver's failure; a barrier
  // does.
  calls.push_back(group->Barrier());
  const std::shared_ptr<StageReplicas> made(
      new StageReplicas(module, std::move(group)));
  return WaitAll(calls).Then([made] { return made; });
}

void StageReplicas::Begin(GradientSums& sums) {
  if (parameters_.empty()) return;
  has_ = Tensor::Zeros({static_cast<int64_t>(parameters_.size())},
                       {.dtype = DType::kU8});
  std::vector<Tensor> own;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Gradient gradient = sums.TakeOf(parameters_[i]);
    has_.data<uint8_t>()[i] = gradient.defined() ? 1 : 0;
    own.push_back(gradient.defined()
                      ? gradient.Dense()
                      : Tensor::ZerosLike(parameters_[i].tensor()));
  }
  calls_.push_back(group_->AllReduce(has_, rpc::ReduceOp::kMax));
  gradients_.clear();  // of a step that failed
  kinds_ = PlacesByKind(own);
  for (const std::vector<size_t>& places : kinds_) {
    std::vector<Tensor> alike;
    for (const size_t i : places) alike.push_back(own[i]);
    gradients_.push_back(FlatTensor::Like(alike));
    ops::CopyManyIf(Tensor(), gradients_.back().parts, alike);
    calls_.push_back(
        group_->AllReduce(gradients_.back().all, rpc::ReduceOp::kMean));
  }
}

absl::Status StageReplicas::Finish(GradientSums& sums) {
  for (const Future<void>& call : std::exchange(calls_, {}))
    RETURN_IF_ERROR(call.Await(kNoLimit));  // ends by the group's limit
  LeafGradients means;
  for (size_t kind = 0; kind < gradients_.size(); ++kind) {
    const std::vector<Tensor>& parts = gradients_[kind].parts;
    for (size_t part = 0; part < parts.size(); ++part) {
      const size_t i = kinds_[kind][part];
      if (has_.data<uint8_t>()[i] != 0)
        means.emplace_back(parameters_[i], parts[part]);
    }
  }
  gradients_.clear();
  sums.Add(std::move(means), /*last=*/true);
  return absl::OkStatus();
}

void StageReplicas::Abort(const absl::Status& why) const {
  if (group_->status().ok()) group_->Abort(why);
}

}  // namespace baton::dist
