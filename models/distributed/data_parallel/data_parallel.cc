// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/data_parallel.h"

#include <iterator>
#include <utility>

#include "autograd/tensors_of.h"
#include "core/graph.h"
#include "core/status.h"
#include "models/distributed/data_parallel/power_sgd.h"

namespace baton::dist {
namespace {

// Each call has the group's deadline.
absl::Status AwaitAll(const std::vector<Future<void>>& calls) {
  absl::Status first;
  for (const Future<void>& call : calls) {
    const absl::Status status = call.Await(kNoLimit);
    if (first.ok()) first = status;
  }
  return first;
}

absl::Status CheckOptions(const DataParallelOptions& options) {
  if (options.shard_optimizer &&
      (options.uneven_inputs || options.travel_as.has_value())) {
    return absl::InvalidArgumentError(
        "shard_optimizer goes neither with uneven_inputs nor with travel_as");
  }
  const bool others = options.travel_as.has_value() || options.uneven_inputs ||
                      options.shard_optimizer;
  if (options.power_sgd_rank < 0 || (options.power_sgd_rank > 0 && others)) {
    return absl::InvalidArgumentError(
        "power_sgd_rank is 0 or more, and goes neither with uneven_inputs nor "
        "with travel_as nor with shard_optimizer");
  }
  if (options.hook != nullptr && (options.power_sgd_rank > 0 || others)) {
    return absl::InvalidArgumentError(
        "a hook goes neither with power_sgd_rank nor with travel_as nor with "
        "uneven_inputs nor with shard_optimizer");
  }
  return absl::OkStatus();
}

}  // namespace

DataParallel::DataParallel(nn::Module& module,
                           std::shared_ptr<rpc::ProcessGroup> group,
                           const DataParallelOptions& options)
    : group_(std::move(group)),
      options_(options),
      all_parameters_(module.Parameters()),
      active_(group_->size()) {
  for (const Variable& parameter : all_parameters_) {
    if (!parameter.requires_grad()) continue;
    places_.emplace(parameter.id(), parameters_.size());
    parameters_.push_back(parameter);
  }
  std::vector<Tensor> buffers;
  for (const auto& [name, buffer] : module.NamedBuffers())
    buffers.push_back(buffer);
  for (const std::vector<Tensor>& tensors :
       {TensorsOf(all_parameters_), buffers})
    for (const Tensor& tensor : tensors)
      Require(tensor.device() == module.device(), "data_parallel",
              "a replica must lie on one device");
  GroupBuffers(buffers);
  std::vector<size_t> backwards;
  for (size_t i = parameters_.size(); i > 0; --i) backwards.push_back(i - 1);
  // Each member's part is at least a multiple of a cache line.
  const int64_t multiple = options_.shard_optimizer ? 16 * group_->size() : 1;
  buckets_ = std::make_unique<GradientBuckets>(parameters_, backwards,
                                               options_.buckets, multiple);
  if (options_.shard_optimizer) Shard();
  hook_ = HookOf(options_);
  clock_ = std::make_shared<StepClock>(stream().device());
}

GradientHook DataParallel::HookOf(const DataParallelOptions& options) {
  if (options.hook != nullptr) return options.hook;
  if (options.power_sgd_rank > 0) {
    const auto power_sgd =
        std::make_shared<PowerSgd>(parameters_, options.power_sgd_rank);
    return [power_sgd](rpc::ProcessGroup& group, const GradientBucket& bucket) {
      return power_sgd->Reduce(group, bucket);
    };
  }
  if (!options.shard_optimizer) return MeanHook(options.travel_as);
  return [this](rpc::ProcessGroup& group, const GradientBucket& bucket) {
    return BucketReduction{
        .call = group.ReduceScatter(ShardOf(bucket.all), bucket.all,
                                    rpc::ReduceOp::kMean),
        .bytes = static_cast<int64_t>(bucket.all.nbytes())};
  };
}

// Buffers of one dtype and device are sent as one tensor.
void DataParallel::GroupBuffers(const std::vector<Tensor>& all) {
  for (const std::vector<size_t>& kind : PlacesByKind(all)) {
    std::vector<Tensor> alike;
    for (const size_t i : kind) alike.push_back(all[i]);
    FlatTensor flat = FlatTensor::Like(alike);
    buffers_.push_back({std::move(alike), std::move(flat)});
  }
}

Stream DataParallel::stream() const {
  return group_->StreamOf(
      parameters_.empty() ? Device::Cpu() : parameters_[0].tensor().device());
}

DataParallelFigures DataParallel::figures() const { return clock_->figures(); }

absl::Status DataParallel::AwaitFormer() {
  if (Graph::IsRecording()) return absl::OkStatus();
  return AwaitAll(std::exchange(former_, {}));
}

absl::Status DataParallel::AwaitOrLeave(std::vector<Future<void>> calls) {
  if (Graph::IsRecording() || !on_gpu()) return AwaitAll(calls);
  std::move(calls.begin(), calls.end(), std::back_inserter(former_));
  return group_->status();
}

void DataParallel::Shard() {
  for (size_t bucket = 0; bucket < buckets_->size(); ++bucket) {
    const std::vector<size_t>& members = buckets_->parameters(bucket);
    std::vector<Tensor> tensors;
    for (const size_t i : members) tensors.push_back(parameters_[i].tensor());
    weights_.push_back(FlatTensor::Like(tensors, int64_t{16} * group_->size()));
    for (size_t part = 0; part < members.size(); ++part) {
      const Tensor& there = weights_.back().parts[part];
      there.CopyFrom(tensors[part]);
      parameters_[members[part]].set_tensor(there);
    }
    shards_.emplace_back(ShardOf(weights_.back().all), true);
  }
}

Tensor DataParallel::ShardOf(const Tensor& all) const {
  const int64_t count = all.numel() / group_->size();
  const int64_t begin = count * group_->rank();
  return all.Slice(0, begin, begin + count);
}

absl::Status DataParallel::GatherParameters() {
  RETURN_IF_ERROR(AwaitFormer());
  std::vector<Future<void>> calls;
  // The forward uses last what the backward has ready first.
  for (size_t i = weights_.size(); i > 0; --i) {
    const Tensor& all = weights_[buckets_->order()[i - 1]].all;
    calls.push_back(group_->AllGather(all, ShardOf(all)));
  }
  return AwaitOrLeave(std::move(calls));
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Make(
    nn::Module& module, std::shared_ptr<rpc::ProcessGroup> group,
    const DataParallelOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  return CatchErrors([&]() -> absl::StatusOr<std::unique_ptr<DataParallel>> {
    std::unique_ptr<DataParallel> parallel(
        new DataParallel(module, std::move(group), options));
    RETURN_IF_ERROR(parallel->BroadcastModel(0));
    return parallel;
  });
}

absl::Status DataParallel::BroadcastModel(int root) {
  std::vector<Future<void>> calls;
  const std::vector<Tensor> parameters = TensorsOf(all_parameters_);
  for (const std::vector<size_t>& kind : PlacesByKind(parameters)) {
    std::vector<Tensor> alike;
    for (const size_t i : kind) alike.push_back(parameters[i]);
    calls.push_back(group_->BroadcastMany(alike, root));
  }
  for (const Buffers& buffers : buffers_)
    calls.push_back(group_->BroadcastMany(buffers.tensors, root));
  // The sender of a broadcast does not learn of a receiver's failure; a barrier
  // does.
  calls.push_back(group_->Barrier());
  return AwaitAll(calls);
}

absl::Status DataParallel::AccumulateBackward(const Variable& loss) {
  return CatchErrors([&] { loss.Backward(); });
}

absl::Status DataParallel::Join() {
  if (!options_.uneven_inputs) {
    return absl::FailedPreconditionError(
        "Join is for groups that were made with uneven_inputs");
  }
  for (;;) {
    RETURN_IF_ERROR(MeetOthers(false));
    // The root is a member that took the last step.
    if (active_ == 0) return BroadcastModel(root_);
    RETURN_IF_ERROR(CatchErrors([&] { return FollowOthers(); }));
  }
}

}  // namespace baton::dist
