// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/data_parallel.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "autograd/engine.h"
#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"
#include "core/stream.h"

namespace baton::dist {
namespace {

using Now = std::chrono::steady_clock;

double SecondsSince(Now::time_point begin) {
  return std::chrono::duration<double>(Now::now() - begin).count();
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

// Of steps, replayed or not. Confined to the thread of DataParallel.
class DataParallel::Clock {
 public:
  explicit Clock(Device device)
      : on_gpu_(device.is_cuda()), computed_(device), reduced_(device) {}

  // Times on the GPU; each replay takes them anew.
  void Computed(const Stream& stream) { computed_.RecordTime(stream); }
  void Reduced(const Stream& stream) { reduced_.RecordTime(stream); }
  // A step of the host's, or of a GPU, where the times are those of its events.
  void Count(int64_t bytes, double backward_s, double waited_s) {
    ++figures_.steps;
    figures_.bytes += bytes;
    figures_.backward_s += backward_s;
    if (on_gpu_) {
      ++untimed_;
    } else {
      figures_.waited_s += waited_s;
    }
  }
  DataParallelFigures figures() {
    if (untimed_ > 0 && reduced_.HasEnded()) {
      const double last = reduced_.MillisecondsSince(computed_) * 1e-3;
      figures_.waited_s +=
          std::max(last, 0.0) * static_cast<double>(std::exchange(untimed_, 0));
    }
    return figures_;
  }

 private:
  const bool on_gpu_;
  Event computed_, reduced_;
  int64_t untimed_ = 0;  // steps
  DataParallelFigures figures_;
};

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
    const StreamScope scope(parallel_.stream());
    for (; posted_ < ready; ++posted_) {
      Tensor gradients = parallel_.buckets_->all(posted_);
      if (parallel_.options_.travel_as.has_value())
        gradients = gradients.To(*parallel_.options_.travel_as);
      travelling_.push_back(gradients);
      bytes_ += static_cast<int64_t>(gradients.nbytes());
      rpc::ProcessGroup& group = *parallel_.group_;
      calls_.push_back(parallel_.options_.shard_optimizer
                           ? group.ReduceScatter(parallel_.ShardOf(gradients),
                                                 gradients,
                                                 rpc::ReduceOp::kMean)
                           : group.AllReduce(gradients, rpc::ReduceOp::kMean));
    }
  }

  absl::Status Finish() {
    std::vector<uint8_t> own;
    for (size_t i = 0; i < parallel_.parameters_.size(); ++i)
      own.push_back(parallel_.buckets_->has(i) ? 1 : 0);
    if (Graph::IsRecording() && own != parallel_.own_have_) {
      return absl::FailedPreconditionError(
          "other parameters have gradients in the step that is recorded than "
          "in "
          "the one before");
    }
    std::copy(own.begin(), own.end(), has_.data<uint8_t>());
    parallel_.own_have_ = std::move(own);
    return FinishWithout();
  }
  // This member has nothing to give.
  absl::Status FinishWithout() {
    PostBuckets(parallel_.buckets_->size());
    // The CPU's part cannot be recorded, and has been agreed before.
    if (!Graph::IsRecording()) {
      RETURN_IF_ERROR(parallel_.group_->AllReduce(has_, rpc::ReduceOp::kMax)
                          .Await(kNoLimit));
      parallel_.some_have_ = has_.ToVector<uint8_t>();
    }
    RETURN_IF_ERROR(parallel_.AwaitOrLeave(std::move(calls_)));
    const StreamScope scope(parallel_.stream());
    TakeBuffers();
    for (size_t i = 0; i < travelling_.size(); ++i) TakeBucket(i);
    return absl::OkStatus();
  }

  int64_t bytes() const { return bytes_; }

 private:
  void PostBuffers() {
    const StreamScope scope(parallel_.stream());
    for (const Buffers& buffers : parallel_.buffers_) {
      if (parallel_.group_->rank() == parallel_.root_)
        ops::CopyManyIf(Tensor(), buffers.flat.parts, buffers.tensors);
      calls_.push_back(
          parallel_.group_->Broadcast(buffers.flat.all, parallel_.root_));
    }
  }
  void TakeBuffers() {
    if (parallel_.group_->rank() == parallel_.root_ ||
        !parallel_.options_.broadcast_buffers)
      return;
    for (const Buffers& buffers : parallel_.buffers_)
      ops::CopyManyIf(Tensor(), buffers.tensors, buffers.flat.parts);
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
  size_t posted_ = 0;
  int64_t bytes_ = 0;
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
  std::vector<Tensor> buffers;
  for (const auto& [name, buffer] : module.NamedBuffers())
    buffers.push_back(buffer);
  GroupBuffers(std::move(buffers));
  std::vector<size_t> backwards;
  for (size_t i = parameters_.size(); i > 0; --i) backwards.push_back(i - 1);
  // Parts of a line each, at least.
  const int64_t multiple = options_.shard_optimizer ? 16 * group_->size() : 1;
  buckets_ = std::make_unique<GradientBuckets>(parameters_, backwards,
                                               options_.buckets, multiple);
  if (options_.shard_optimizer) Shard();
  clock_ = std::make_shared<Clock>(stream().device());
}

// What lies in one place of a kind travels as one.
void DataParallel::GroupBuffers(std::vector<Tensor> left) {
  while (!left.empty()) {
    std::vector<Tensor> alike, others;
    for (const Tensor& buffer : left) {
      const bool fits = buffer.dtype() == left.front().dtype() &&
                        buffer.device() == left.front().device();
      (fits ? alike : others).push_back(buffer);
    }
    FlatTensor flat = FlatTensor::Like(alike);
    buffers_.push_back({std::move(alike), std::move(flat)});
    left = std::move(others);
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
  RETURN_IF_ERROR(AwaitFormer());
  std::vector<Future<void>> calls;
  for (size_t i = weights_.size(); i > 0; --i) {
    const Tensor& all = weights_[i - 1].all;
    calls.push_back(group_->AllGather(all, ShardOf(all)));
  }
  return AwaitOrLeave(std::move(calls));
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
  for (const Buffers& buffers : buffers_)
    for (const Tensor& buffer : buffers.tensors)
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
  const auto begin = Now::now();
  RETURN_IF_ERROR(AwaitFormer());
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
                       const StreamScope scope(stream());
                       pass.PostBuckets(buckets_->Put(found->second, gradient));
                     });
  {
    const StreamScope scope(stream());
    buckets_->PutTheRest();
  }
  clock_->Computed(CurrentStream(stream().device()));
  const double backward_s = SecondsSince(begin);
  const auto computed = Now::now();
  RETURN_IF_ERROR(pass.Finish());
  LeaveGradients();
  RETURN_IF_ERROR(AdoptOrder(order));
  clock_->Reduced(stream());
  if (Graph::IsRecording()) {
    Graph::AfterReplay(
        [clock = clock_, bytes = pass.bytes()] { clock->Count(bytes, 0, 0); });
  } else {
    clock_->Count(pass.bytes(), backward_s, SecondsSince(computed));
  }
  return absl::OkStatus();
}

void DataParallel::LeaveGradients() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (options_.shard_optimizer) {
      parameters_[i].ZeroGrad();
    } else if (some_have_[i] != 0) {
      parameters_[i].set_grad(buckets_->view(i));
    }
  }
  for (size_t bucket = 0; bucket < shards_.size(); ++bucket)
    shards_[bucket].set_grad(ShardOf(buckets_->all(bucket)));
}

absl::Status DataParallel::MeetOthers(bool has_inputs) {
  if (Graph::IsRecording() && (options_.uneven_inputs || !order_known_)) {
    return absl::FailedPreconditionError(
        "a step is recorded once one has been taken, and not with "
        "uneven_inputs");
  }
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
  RETURN_IF_ERROR(AwaitFormer());
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
