// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "autograd/distributed/step_count.h"
#include "autograd/engine.h"
#include "autograd/tensors_of.h"
#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"
#include "core/stream.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "optim/optimizer.h"
#include "rpc/tracer.h"

// The collectives of one step.
namespace baton::dist {
namespace {

using Now = std::chrono::steady_clock;

double SecondsSince(Now::time_point begin) {
  return std::chrono::duration<double>(Now::now() - begin).count();
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
    // In the first step, GPUs choose algorithms by their time, so nothing that
    // waits for other members may run concurrently.
    if (!parallel.on_gpu() || parallel.settled_) PostBuffers();
  }

  // Posts further ready buckets while backward goes on.
  void PostReady(size_t ready) {
    if (buffers_posted_) PostBuckets(ready);
  }
  void PostBuckets(size_t ready) {
    const StreamScope scope(parallel_.stream());
    for (; posted_ < ready; ++posted_) {
      reductions_.push_back(
          parallel_.hook_(*parallel_.group_, BucketOf(posted_)));
    }
  }

  absl::Status Finish() {
    std::vector<uint8_t> own;
    for (size_t i = 0; i < parallel_.parameters_.size(); ++i)
      own.push_back(parallel_.buckets_->has(i) ? 1 : 0);
    if (Graph::IsRecording() && own != parallel_.own_have_) {
      return absl::FailedPreconditionError(
          "a recorded step must have gradients for the same parameters as the "
          "step before it");
    }
    std::copy(own.begin(), own.end(), has_.data<uint8_t>());
    parallel_.own_have_ = std::move(own);
    return FinishWithout();
  }
  // Finishes a step for a member without gradients.
  absl::Status FinishWithout() {
    PostBuffers();
    PostBuckets(parallel_.buckets_->size());
    // The CPU's part cannot be recorded; it was agreed before.
    if (!Graph::IsRecording()) {
      RETURN_IF_ERROR(parallel_.group_->AllReduce(has_, rpc::ReduceOp::kMax)
                          .Await(kNoLimit));
      parallel_.some_have_ = has_.ToVector<uint8_t>();
    }
    const StreamScope scope(parallel_.stream());
    RETURN_IF_ERROR(FinishBuckets());
    RETURN_IF_ERROR(parallel_.AwaitOrLeave(std::move(calls_)));
    TakeBuffers();
    ScaleToActive();
    return absl::OkStatus();
  }

  int64_t bytes() const { return bytes_; }

 private:
  GradientBucket BucketOf(size_t number) const {
    const GradientBuckets& buckets = *parallel_.buckets_;
    const size_t index = buckets.order()[number];
    GradientBucket bucket{.number = number,
                          .all = buckets.all(index),
                          .parameters = buckets.parameters(index)};
    for (const size_t i : bucket.parameters)
      bucket.gradients.push_back(buckets.view(i));
    return bucket;
  }
  void PostBuffers() {
    if (std::exchange(buffers_posted_, true) ||
        !parallel_.options_.broadcast_buffers)
      return;
    const StreamScope scope(parallel_.stream());
    for (const Buffers& buffers : parallel_.buffers_) {
      // Receivers copy their buffers, too, so that the broadcast begins after
      // their forward. In a recorded step it would otherwise begin with the
      // forward, wait for the root's and occupy multiprocessors all that time.
      ops::CopyManyIf(Tensor(), buffers.flat.parts, buffers.tensors);
      calls_.push_back(
          parallel_.group_->Broadcast(buffers.flat.all, parallel_.root_));
    }
  }
  // Works in rounds, so that what one bucket posts is under way while the other
  // buckets have their turn.
  absl::Status FinishBuckets() {
    for (bool again = true; again;) {
      again = false;
      for (BucketReduction& each : reductions_) {
        bytes_ += std::exchange(each.bytes, 0);
        const Future<void> call = std::exchange(each.call, {});
        if (call.valid()) RETURN_IF_ERROR(parallel_.AwaitOrLeave({call}));
        const auto then = std::exchange(each.then, nullptr);
        if (then == nullptr) continue;
        each = then();
        again = true;
      }
    }
    return absl::OkStatus();
  }
  void TakeBuffers() {
    if (parallel_.group_->rank() == parallel_.root_ ||
        !parallel_.options_.broadcast_buffers)
      return;
    for (const Buffers& buffers : parallel_.buffers_)
      ops::CopyManyIf(Tensor(), buffers.tensors, buffers.flat.parts);
  }
  // Rescales the mean, which was taken over all members, to the active ones.
  void ScaleToActive() {
    const int size = parallel_.group_->size();
    if (parallel_.active_ == size) return;
    for (size_t i = 0; i < parallel_.buckets_->size(); ++i) {
      ops::ScaleInto(parallel_.buckets_->all(i),
                     static_cast<double>(size) / parallel_.active_);
    }
  }

  DataParallel& parallel_;
  const Tensor has_;                         // u8, by parameter
  std::vector<Future<void>> calls_;          // of buffers
  std::vector<BucketReduction> reductions_;  // by bucket
  bool buffers_posted_ = false;
  size_t posted_ = 0;  // number of buckets
  int64_t bytes_ = 0;
};

absl::Status DataParallel::Backward(const Variable& loss) {
  return Backward({loss}, {Tensor()});
}

absl::Status DataParallel::Backward(const std::vector<Variable>& outputs,
                                    const std::vector<Tensor>& grad_outputs) {
  const bool scaled =
      std::any_of(grad_outputs.begin(), grad_outputs.end(),
                  [](const Tensor& scale) { return scale.defined(); });
  // This check comes before any message of the step, so that its failure
  // affects no other member.
  if (scaled && options_.power_sgd_rank > 0) {
    return absl::InvalidArgumentError(
        "with power_sgd_rank Backward takes no gradients of the outputs: a "
        "gradient that overflows under a loss scale would stay in the error "
        "that PowerSGD keeps. Train in bf16 or f32 without a scale, and put "
        "other weights into the loss");
  }
  return Run(
      [&](const LeafTaker& take) {
        autograd::Backward(outputs, grad_outputs, /*retain_graph=*/false,
                           [&](const Variable& leaf, const Gradient& gradient) {
                             if (!take(leaf, gradient))
                               Variable(leaf).AccumulateGrad(gradient);
                           });
        return absl::OkStatus();
      },
      scaled);
}

absl::Status DataParallel::Backward(Context& ctx, const Variable& loss,
                                    BackwardOptions options) {
  return Run([&](const LeafTaker& take) -> absl::Status {
    if (Graph::IsRecording()) {
      return absl::FailedPreconditionError(
          "a step through a context is not recorded");
    }
    options.take = take;
    // The options' own limit ends the call; afterwards nothing of it runs.
    return ctx.BackwardAsync({loss}, {}, options).Await(kNoLimit);
  });
}

absl::Status DataParallel::Run(const Backwards& backward, bool scaled) {
  absl::Status status = CatchErrors([&] { return Reduce(backward, scaled); });
  // The other members wait for gradients that this member will not send.
  if (!status.ok() && group_->status().ok())
    group_->Abort(Annotate(status, "data parallel"));
  return status;
}

absl::Status DataParallel::Compute(const Backwards& backward, Pass& pass,
                                   std::vector<size_t>& order) {
  const rpc::TraceSpan span(*group_->agent().tracer(), kDataParallelTrack,
                            [] { return "backward"; });
  buckets_->Begin();
  RETURN_IF_ERROR(backward([&](const Variable& leaf, const Gradient& gradient) {
    const auto found = places_.find(leaf.id());
    if (found == places_.end()) return false;
    order.push_back(found->second);
    const StreamScope scope(stream());
    pass.PostReady(buckets_->Put(found->second, gradient));
    return true;
  }));
  const StreamScope scope(stream());
  buckets_->PutTheRest();
  return absl::OkStatus();
}

absl::Status DataParallel::Reduce(const Backwards& backward, bool scaled) {
  const auto begin = Now::now();
  RETURN_IF_ERROR(AwaitFormer());
  RETURN_IF_ERROR(MeetOthers(true));
  Pass pass(*this);
  std::vector<size_t> order;
  RETURN_IF_ERROR(Compute(backward, pass, order));
  clock_->Computed(CurrentStream(stream().device()));
  const double backward_s = SecondsSince(begin);
  const auto computed = Now::now();
  const rpc::TraceSpan span(*group_->agent().tracer(), kDataParallelTrack,
                            [] { return "await reductions"; });
  RETURN_IF_ERROR(pass.Finish());
  LeaveGradients();
  if (scaled && options_.shard_optimizer) RETURN_IF_ERROR(ShareOverflow());
  RETURN_IF_ERROR(AdoptOrder(order));
  clock_->Reduced(stream());
  settled_ = true;
  if (Graph::IsRecording()) {
    Graph::AfterReplay([clock = clock_, bytes = pass.bytes(),
                        steps = group_->agent().service<StepCount>()] {
      clock->Count(bytes, 0, 0);
      if (steps != nullptr) steps->Add();
    });
  } else {
    clock_->Count(pass.bytes(), backward_s, SecondsSince(computed));
    CountStep(group_->agent());
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

absl::StatusOr<Tensor> DataParallel::SquareNormOfShards() {
  const StreamScope scope(stream());
  const Tensor sum = optim::Optimizer::SquareNorm(GradientsOf(shards_));
  RETURN_IF_ERROR(AwaitOrLeave({group_->AllReduce(sum)}));
  return sum;
}

absl::StatusOr<double> DataParallel::NormOfShards() {
  if (!options_.shard_optimizer || Graph::IsRecording()) {
    return absl::FailedPreconditionError(
        "the norm of all shards is for groups that were made with "
        "shard_optimizer, and not for recordings");
  }
  return CatchErrors([&]() -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const Tensor sum, SquareNormOfShards());
    return std::sqrt(sum.Item());
  });
}

// Adds zero times the square norm, a NaN if some member's gradient is not
// finite, to the gradient of the first shard, which is small. The sum is a new
// tensor, because a NaN in the bucket's padding would stay: nothing clears it.
absl::Status DataParallel::ShareOverflow() {
  if (shards_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor sum, SquareNormOfShards());
  const StreamScope scope(stream());
  const Tensor gradient = shards_.front().grad();
  shards_.front().set_grad(
      ops::Add(gradient, ops::MulScalar(sum, 0).To(gradient.dtype())));
  return absl::OkStatus();
}

absl::Status DataParallel::MeetOthers(bool has_inputs) {
  if (Graph::IsRecording() && (options_.uneven_inputs || !order_known_)) {
    return absl::FailedPreconditionError(
        "a step can be recorded only after an ordinary one, and not with "
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

absl::Status DataParallel::FollowOthers() {
  RETURN_IF_ERROR(AwaitFormer());
  buckets_->FillWithZeros();
  Pass pass(*this);
  RETURN_IF_ERROR(pass.FinishWithout());
  return AdoptOrder({});
}

// Gradients in the former buckets stay there until the next pass.
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
  if (options_.shard_optimizer) {
    buckets_->Reorder(whole);
    return absl::OkStatus();
  }
  buckets_ =
      std::make_unique<GradientBuckets>(parameters_, whole, options_.buckets);
  return absl::OkStatus();
}

}  // namespace baton::dist
