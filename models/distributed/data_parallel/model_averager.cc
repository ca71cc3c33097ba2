// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/model_averager.h"

#include <utility>

#include "autograd/tensors_of.h"
#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// The tag of these messages, unlike those of the members' own sends.
constexpr int kTag = 0x61766700;

// Each call has the group's deadline.
absl::Status AwaitEach(const std::vector<Future<void>>& calls) {
  return WaitAll(calls).Await(kNoLimit);
}

}  // namespace

ModelAverager::ModelAverager(const nn::Module& module,
                             std::shared_ptr<rpc::ProcessGroup> group,
                             const AveragingOptions& options)
    : group_(std::move(group)), options_(options) {
  const std::vector<Tensor> all = TensorsOf(module.Parameters());
  for (const std::vector<size_t>& places : PlacesByKind(all)) {
    Kind kind;
    for (const size_t i : places) kind.parameters.push_back(all[i]);
    kind.own = FlatTensor::Like(kind.parameters);
    if (options_.kind == Averaging::kGossip)
      kind.other = FlatTensor::Like(kind.parameters);
    kinds_.push_back(std::move(kind));
  }
}

absl::StatusOr<std::unique_ptr<ModelAverager>> ModelAverager::Make(
    const nn::Module& module, std::shared_ptr<rpc::ProcessGroup> group,
    const AveragingOptions& options) {
  if (options.period < 1 || options.warm_up < 0) {
    return absl::InvalidArgumentError(
        "models are averaged each step or less often, after no steps or more");
  }
  return CatchErrors([&]() -> absl::StatusOr<std::unique_ptr<ModelAverager>> {
    std::vector<Future<void>> calls;
    for (const auto& [name, tensor] : module.StateDict())
      calls.push_back(group->Broadcast(tensor));
    calls.push_back(group->Barrier());
    RETURN_IF_ERROR(AwaitEach(calls));
    return std::unique_ptr<ModelAverager>(
        new ModelAverager(module, std::move(group), options));
  });
}

absl::Status ModelAverager::Step() {
  ++steps_;
  const int64_t after = steps_ - options_.warm_up;
  if (after > 0 && after % options_.period != 0) return absl::OkStatus();
  if (options_.kind == Averaging::kPeriodic) return AverageAll();
  return CatchErrors([&] { return Gossip(); });
}

absl::Status ModelAverager::AverageAll() {
  return CatchErrors([&]() -> absl::Status {
    CopyIn();
    std::vector<Future<void>> calls;
    for (const Kind& kind : kinds_)
      calls.push_back(group_->AllReduce(kind.own.all, rpc::ReduceOp::kMean));
    RETURN_IF_ERROR(AwaitEach(calls));
    CopyOut();
    return absl::OkStatus();
  });
}

// Each model is sent exactly once and each member receives exactly one, so the
// mean over all models does not change.
absl::Status ModelAverager::Gossip() {
  const int size = group_->size();
  if (size == 1) return absl::OkStatus();
  const int to = (group_->rank() + distance_) % size;
  const int from = (group_->rank() - distance_ + size) % size;
  CopyIn();
  std::vector<Future<void>> calls;
  for (const Kind& kind : kinds_) {
    calls.push_back(group_->Send(kind.own.all, to, kTag));
    calls.push_back(group_->Receive(kind.other.all, from, kTag));
  }
  RETURN_IF_ERROR(AwaitEach(calls));
  for (const Kind& kind : kinds_) {
    ops::AddInto(kind.own.all, kind.other.all);
    ops::ScaleInto(kind.own.all, 0.5);
  }
  CopyOut();
  distance_ = 2 * distance_ < size ? 2 * distance_ : 1;
  return absl::OkStatus();
}

void ModelAverager::CopyIn() {
  for (const Kind& kind : kinds_)
    ops::CopyManyIf(Tensor(), kind.own.parts, kind.parameters);
}

void ModelAverager::CopyOut() {
  for (const Kind& kind : kinds_)
    ops::CopyManyIf(Tensor(), kind.parameters, kind.own.parts);
  ++averaged_;
}

}  // namespace baton::dist
