// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/data_parallel.h"

#include <chrono>
#include <utility>

#include "autograd/engine.h"
#include "core/ops/arithmetic.h"
#include "core/status.h"

namespace baton::dist {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Each call has the group's deadline.
absl::Status AwaitAll(const std::vector<Future<void>>& calls) {
  absl::Status first;
  for (const Future<void>& call : calls) {
    const absl::Status status = call.Await(kNoLimit);
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace

// The collectives of one step, which all members post in the same order:
// buffers, buckets, and which parameters have a gradient at all.
class DataParallel::Pass {
 public:
  explicit Pass(DataParallel& parallel)
      : parallel_(parallel),
        has_(Tensor::Zeros({static_cast<int64_t>(parallel.parameters_.size())},
                           {.dtype = DType::kU8})) {
    if (parallel.options_.broadcast_buffers) PostBuffers();
  }

  // Those that have not been before.
  void PostBuckets(size_t ready) {
    for (; posted_ < ready; ++posted_) {
      Tensor gradients = parallel_.buckets_->all(posted_);
      if (parallel_.options_.travel_as.has_value())
        gradients = gradients.To(*parallel_.options_.travel_as);
      travelling_.push_back(gradients);
      parallel_.figures_.bytes += static_cast<int64_t>(gradients.nbytes());
      rpc::ProcessGroup& group = *parallel_.group_;
      calls_.push_back(parallel_.options_.shard_optimizer
                           ? group.ReduceScatter(parallel_.ShardOf(gradients),
                                                 gradients,
                                                 rpc::ReduceOp::kMean)
                           : group.AllReduce(gradients, rpc::ReduceOp::kMean));
    }
  }

  absl::Status Finish() {
    for (size_t i = 0; i < parallel_.parameters_.size(); ++i)
      if (parallel_.buckets_->has(i)) has_.data<uint8_t>()[i] = 1;
    return FinishWithout();
  }
  // This member has nothing to give.
  absl::Status FinishWithout() {
    PostBuckets(parallel_.buckets_->size());
    calls_.push_back(parallel_.group_->AllReduce(has_, rpc::ReduceOp::kMax));
    RETURN_IF_ERROR(AwaitAll(calls_));
    TakeBuffers();
    for (size_t i = 0; i < travelling_.size(); ++i) TakeBucket(i);
    return absl::OkStatus();
  }

  // Once finished.
  bool SomeHave(size_t parameter) const {
    return has_.data<uint8_t>()[parameter] != 0;
  }

 private:
  void PostBuffers() {
    std::vector<Tensor> left = parallel_.buffers_;
    while (!left.empty()) {
      std::vector<Tensor> alike, others;
      for (const Tensor& buffer : left) {
        const bool fits = buffer.dtype() == left.front().dtype() &&
                          buffer.device() == left.front().device();
        (fits ? alike : others).push_back(buffer);
      }
      FlatTensor flat = FlatTensor::Like(alike);
      for (size_t i = 0; i < alike.size(); ++i)
        flat.parts[i].CopyFrom(alike[i]);
      calls_.push_back(parallel_.group_->Broadcast(flat.all, parallel_.root_));
      buffers_.emplace_back(std::move(alike), std::move(flat));
      left = std::move(others);
    }
  }
  void TakeBuffers() {
    if (parallel_.group_->rank() == parallel_.root_) return;
    for (const auto& [buffers, flat] : buffers_)
      for (size_t i = 0; i < buffers.size(); ++i)
        buffers[i].CopyFrom(flat.parts[i]);
  }
  void TakeBucket(size_t bucket) {
    const Tensor& gradients = parallel_.buckets_->all(bucket);
    if (!SameView(gradients, travelling_[bucket]))
      gradients.CopyFrom(travelling_[bucket]);
    const int size = parallel_.group_->size();
    if (parallel_.active_ < size)
      ops::ScaleInto(gradients, static_cast<double>(size) / parallel_.active_);
  }

  DataParallel& parallel_;
  const Tensor has_;  // u8, by parameter
  std::vector<Future<void>> calls_;
  std::vector<Tensor> travelling_;  // by bucket
  std::vector<std::pair<std::vector<Tensor>, FlatTensor>> buffers_;
  size_t posted_ = 0;
};

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
  for (const auto& [name, buffer] : module.NamedBuffers())
    buffers_.push_back(buffer);
  std::vector<size_t> backwards;
  for (size_t i = parameters_.size(); i > 0; --i) backwards.push_back(i - 1);
  // Parts of a line each, at least.
  const int64_t multiple = options_.shard_optimizer ? 16 * group_->size() : 1;
  buckets_ = std::make_unique<GradientBuckets>(parameters_, backwards,
                                               options_.buckets, multiple);
  if (options_.shard_optimizer) Shard();
}

void DataParallel::Shard() {
  order_known_ = true;
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
  std::vector<Future<void>> calls;
  for (const FlatTensor& weights : weights_)
    calls.push_back(group_->AllGather(weights.all, ShardOf(weights.all)));
  return AwaitAll(calls);
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Make(
    nn::Module& module, std::shared_ptr<rpc::ProcessGroup> group,
    const DataParallelOptions& options) {
  if (options.shard_optimizer &&
      (options.uneven_inputs || options.travel_as.has_value())) {
    return absl::InvalidArgumentError(
        "shard_optimizer goes neither with uneven_inputs nor with travel_as");
  }
  return CatchErrors([&]() -> absl::StatusOr<std::unique_ptr<DataParallel>> {
    std::unique_ptr<DataParallel> parallel(
        new DataParallel(module, std::move(group), options));
    RETURN_IF_ERROR(parallel->BroadcastModel(0));
    return parallel;
  });
}

absl::Status DataParallel::BroadcastModel(int root) {
  std::vector<Future<void>> calls;
  for (const Variable& parameter : all_parameters_)
    calls.push_back(group_->Broadcast(parameter.tensor(), root));
  for (const Tensor& buffer : buffers_)
    calls.push_back(group_->Broadcast(buffer, root));
  // Who gives does not hear of one that cannot take it.
  calls.push_back(group_->Barrier());
  return AwaitAll(calls);
}

absl::Status DataParallel::AccumulateBackward(const Variable& loss) {
  return CatchErrors([&] { loss.Backward(); });
}

absl::Status DataParallel::Backward(const Variable& loss) {
  return Backward({loss}, {Tensor()});
}

absl::Status DataParallel::Backward(const std::vector<Variable>& outputs,
                                    const std::vector<Tensor>& grad_outputs) {
  const absl::Status status =
      CatchErrors([&] { return Reduce(outputs, grad_outputs); });
  // The others wait for what will not come.
  if (!status.ok() && group_->status().ok())
    group_->Abort(Annotate(status, "data parallel"));
  return status;
}

absl::Status DataParallel::Reduce(const std::vector<Variable>& outputs,
                                  const std::vector<Tensor>& grad_outputs) {
  const auto begin = Clock::now();
  RETURN_IF_ERROR(MeetOthers(true));
  Pass pass(*this);
  buckets_->Begin();
  std::vector<size_t> order;
  autograd::Backward(outputs, grad_outputs, /*retain_graph=*/false,
                     [&](const Variable& leaf, const Gradient& gradient) {
                       const auto found = places_.find(leaf.id());
                       if (found == places_.end())
                         return Variable(leaf).AccumulateGrad(gradient);
                       order.push_back(found->second);
                       pass.PostBuckets(buckets_->Put(found->second, gradient));
                     });
  buckets_->PutTheRest();
  figures_.backward_s += SecondsSince(begin);
  const auto computed = Clock::now();
  RETURN_IF_ERROR(pass.Finish());
  LeaveGradients(pass);
  RETURN_IF_ERROR(AdoptOrder(order));
  figures_.waited_s += SecondsSince(computed);
  ++figures_.steps;
  return absl::OkStatus();
}

void DataParallel::LeaveGradients(const Pass& pass) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (options_.shard_optimizer) {
      parameters_[i].ZeroGrad();
    } else if (pass.SomeHave(i)) {
      parameters_[i].set_grad(buckets_->view(i));
    }
  }
  for (size_t bucket = 0; bucket < shards_.size(); ++bucket)
    shards_[bucket].set_grad(ShardOf(buckets_->all(bucket)));
}

absl::Status DataParallel::MeetOthers(bool has_inputs) {
  if (!options_.uneven_inputs) return absl::OkStatus();
  const Tensor active = Tensor::Zeros({group_->size()}, {.dtype = DType::kU8});
  active.data<uint8_t>()[group_->rank()] = has_inputs ? 1 : 0;
  RETURN_IF_ERROR(
      group_->AllReduce(active, rpc::ReduceOp::kMax).Await(kNoLimit));
  active_ = 0;
  for (int rank = group_->size() - 1; rank >= 0; --rank) {
    if (active.data<uint8_t>()[rank] == 0) continue;
    root_ = rank;
    ++active_;
  }
  return absl::OkStatus();
}

absl::Status DataParallel::Join() {
  if (!options_.uneven_inputs) {
    return absl::FailedPreconditionError(
        "Join is for groups that were made with uneven_inputs");
  }
  for (;;) {
    RETURN_IF_ERROR(MeetOthers(false));
    // The root of the last step is one that took it.
    if (active_ == 0) return BroadcastModel(root_);
    RETURN_IF_ERROR(CatchErrors([&] { return FollowOthers(); }));
  }
}

absl::Status DataParallel::FollowOthers() {
  buckets_->FillWithZeros();
  Pass pass(*this);
  RETURN_IF_ERROR(pass.FinishWithout());
  return AdoptOrder({});
}

// Gradients that lie in the former buckets stay there until the next pass.
absl::Status DataParallel::AdoptOrder(const std::vector<size_t>& order) {
  if (std::exchange(order_known_, true)) return absl::OkStatus();
  std::vector<bool> listed(parameters_.size());
  std::vector<size_t> whole;
  const auto add = [&](size_t i) {
    if (i >= listed.size() || listed[i]) return;
    listed[i] = true;
    whole.push_back(i);
  };
  for (const size_t i : order) add(i);
  for (size_t i = parameters_.size(); i > 0; --i) add(i - 1);
  const Tensor numbers = Tensor::Zeros({static_cast<int64_t>(whole.size())},
                                       {.dtype = DType::kI64});
  for (size_t i = 0; i < whole.size(); ++i)
    numbers.data<int64_t>()[i] = static_cast<int64_t>(whole[i]);
  RETURN_IF_ERROR(group_->Broadcast(numbers, root_).Await(kNoLimit));
  listed.assign(parameters_.size(), false);
  whole.clear();
  for (const int64_t i : numbers.ToVector<int64_t>())
    add(static_cast<size_t>(i));
  if (whole.size() != parameters_.size())
    return absl::DataLossError("an order of parameters that is none");
  buckets_ =
      std::make_unique<GradientBuckets>(parameters_, whole, options_.buckets);
  return absl::OkStatus();
}

}  // namespace baton::dist
