// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "autograd/variable.h"
#include "core/dtype.h"
#include "core/future.h"
#include "core/stream.h"
#include "models/distributed/data_parallel/gradient_buckets.h"
#include "models/distributed/data_parallel/gradient_hook.h"
#include "models/distributed/data_parallel/step_clock.h"
#include "models/nn/module.h"
#include "rpc/collectives/process_group.h"

namespace baton::dist {

struct DataParallelOptions {
  BucketSizes buckets{};
  // The dtype in which gradients are sent and summed: bf16 or f16 halve the
  // bytes. Unset: their own dtype.
  std::optional<DType> travel_as{};
  // If above 0, gradients are sent as matrices with this number of columns
  // (power_sgd.h). They must then be finite, so Backward refuses gradients of
  // the outputs, such as a loss scale. travel_as, uneven_inputs and
  // shard_optimizer must not be set.
  int power_sgd_rank = 0;
  // If set, reduces each bucket instead of taking the mean (gradient_hook.h).
  // It must be the same at all members, and cannot be combined with any of the
  // options named above.
  GradientHook hook{};
  // After each step, running statistics and other buffers are copied from rank
  // 0.
  bool broadcast_buffers = true;
  // Members may take different numbers of steps: see Join.
  bool uneven_inputs = false;
  // Each member steps only a part of the parameters and has the optimizer's
  // state only of that part (ZeRO-1): see shards(). Cannot be combined with
  // uneven_inputs or travel_as.
  bool shard_optimizer = false;
};

// The row of a trace (rpc/tracer.h) in which Backward's spans are shown.
inline constexpr char kDataParallelTrack[] = "data parallel";

// A model of which every member of a group has a copy that it trains on its own
// inputs. After Backward each parameter's gradient is the mean over the
// members, so that identical optimizers step all copies to the same values, bit
// for bit.
//
//   ASSIGN_OR_RETURN(auto parallel, dist::DataParallel::Make(model, group));
//   optim::Sgd sgd(model.Parameters(), {.lr = 0.1});
//   for (...) {
//     sgd.ZeroGrad();
//     RETURN_IF_ERROR(parallel->Backward(loss_fn(model(x), y)));
//     sgd.Step();
//   }
//
// Gradients are packed into buckets, which are reduced while backward goes on.
// In the first step the buckets follow the reverse order of the parameters;
// from the second step on, the order in which the first member's gradients were
// ready. With shard_optimizer the shards stay as they are, but buckets are
// reduced, and parameters gathered, in that order. Gradients are views of the
// buckets and change with the next Backward. A parameter that no member's loss
// reaches keeps its gradient; if only some members reach it, the others count
// as 0 in the mean. All members must make the same calls in the same order. An
// error at one member breaks the group, except if PowerSGD refuses a loss
// scale, because nothing was sent then.
//
// If one member is on a GPU, all must be. Later work on the GPU then waits
// there for the gradients, and no call waits for the GPU: an error on it is
// returned by a later call, and is the group's status. Hence whole steps can be
// recorded (nn::GraphedStep) after at least two ordinary steps; all of them
// must have the same number of gradients. Replays fail as the group does.
// Thread-compatible.
class DataParallel {
 public:
  // Waits for all members; parameters and buffers become those of rank 0. The
  // module must outlive this; do not move or cast it afterwards.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Make(
      nn::Module& module, std::shared_ptr<rpc::ProcessGroup> group,
      const DataParallelOptions& options = {});

  // Runs backward from a loss, or from several values weighted by their
  // gradients. Adds to existing gradients, such as those of AccumulateBackward.
  absl::Status Backward(const Variable& loss);
  absl::Status Backward(const std::vector<Variable>& outputs,
                        const std::vector<Tensor>& grad_outputs);
  // Runs backward through the calls of a context, also to other workers.
  // Gradients of what is not a parameter of the module here, or is at other
  // workers, stay in the context. Such steps cannot be recorded.
  absl::Status Backward(Context& ctx, const Variable& loss,
                        BackwardOptions options = {});
  // Runs backward for this member alone; the gradients are reduced with those
  // of the next Backward. With several micro-batches, use it for all but the
  // last (PyTorch's no_sync).
  static absl::Status AccumulateBackward(const Variable& loss);

  // With uneven_inputs, call this when this member has no more steps: it takes
  // part in the steps of the others without gradients until all members have
  // called Join. Means are over the members that take a step. In the end all
  // have the parameters and buffers of one of the members that finished last;
  // the optimizers' state does not change.
  absl::Status Join();

  // With shard_optimizer: the tensors that this member's optimizer must step.
  // They are flat parts of the parameters, one for each bucket; rules that work
  // element by element step them as they would step the parameters. Backward
  // replaces their gradients instead of the parameters', and after the step
  // GatherParameters collects the other members' parts:
  //   optim::Adam adam(parallel->shards());
  //   ...
  //   RETURN_IF_ERROR(parallel->Backward(loss));
  //   adam.Step();
  //   RETURN_IF_ERROR(parallel->GatherParameters());
  // A parameter that no loss reaches has a gradient of zeros. The memory order
  // of parameters and buckets stays that of the first step. On a GPU the parts
  // arrive in the order in which a forward uses them, and the host does not
  // wait; a recorded step should begin with this call.
  // A loss scale must be given to Backward, among the gradients of the outputs:
  // if a gradient overflows, each member then has NaNs in a shard, so that all
  // scalers skip the step. A limit on the norm needs the norm of all shards
  // (no call in a recording; it waits for the GPU):
  //   ASSIGN_OR_RETURN(const double norm, parallel->NormOfShards());
  //   adam.Step([](const Variable& shard) { return shard.gradient(); },
  //             nullptr, norm);
  const std::vector<Variable>& shards() const { return shards_; }
  absl::StatusOr<double> NormOfShards();
  absl::Status GatherParameters();

  rpc::ProcessGroup& group() const { return *group_; }
  size_t buckets() const { return buckets_->size(); }
  DataParallelFigures figures() const;

 private:
  class Pass;
  // The buffers to copy from the root, and the tensor in which they are sent.
  struct Buffers {
    std::vector<Tensor> tensors;
    FlatTensor flat;
  };
  DataParallel(nn::Module& module, std::shared_ptr<rpc::ProcessGroup> group,
               const DataParallelOptions& options);

  absl::Status BroadcastModel(int root);
  void GroupBuffers(const std::vector<Tensor>& all);
  // Returns the stream of the collectives, on which this member's work on
  // gradients and parameters runs if they are on a GPU.
  Stream stream() const;
  bool on_gpu() const { return stream().device().is_cuda(); }
  // Waits until the GPU has finished the work of earlier calls; returns at once
  // for work on the CPU or in a recording.
  absl::Status AwaitFormer();
  absl::Status AwaitOrLeave(std::vector<Future<void>> calls);
  GradientHook HookOf(const DataParallelOptions& options);
  // Moves the parameters into buckets and makes the shards.
  void Shard();
  Tensor ShardOf(const Tensor& all) const;
  void LeaveGradients();
  // Returns the sum, over all members, of the squares of their shards'
  // gradients, f64 [].
  absl::StatusOr<Tensor> SquareNormOfShards();
  // Makes a gradient of each member NaN if a gradient of any member is not
  // finite.
  absl::Status ShareOverflow();
  // Agrees with the others on the next step, or on Join.
  absl::Status MeetOthers(bool has_inputs);
  // Aborts the group if `backward`, or what follows it, fails.
  using Backwards = std::function<absl::Status(const LeafTaker& take)>;
  absl::Status Run(const Backwards& backward, bool scaled = false);
  // Runs `backward` and reduces buckets meanwhile. `order` becomes the order in
  // which gradients were ready, as indices in parameters_.
  absl::Status Compute(const Backwards& backward, Pass& pass,
                       std::vector<size_t>& order);
  absl::Status Reduce(const Backwards& backward, bool scaled);
  absl::Status FollowOthers();
  absl::Status AdoptOrder(const std::vector<size_t>& order);

  const std::shared_ptr<rpc::ProcessGroup> group_;
  const DataParallelOptions options_;
  std::vector<Variable> all_parameters_;
  std::vector<Variable> parameters_;  // those that require gradients
  // indices in parameters_, by id
  std::unordered_map<const void*, size_t> places_;
  std::vector<Buffers> buffers_;
  std::unique_ptr<GradientBuckets> buckets_;
  GradientHook hook_;  // what reduces each bucket
  bool order_known_ = false;
  bool settled_ = false;  // a step has been taken
  // By parameter, in the last step: whether this member had a gradient, and
  // whether any member had.
  std::vector<uint8_t> own_have_, some_have_;
  std::vector<FlatTensor> weights_;  // by bucket, if they are sharded
  std::vector<Variable> shards_;
  // The following belong to the present step.
  int root_ = 0;                      // the member whose buffers are copied
  int active_ = 0;                    // number of members that take it
  std::vector<Future<void>> former_;  // which the GPU may not have finished
  std::shared_ptr<StepClock> clock_;  // shared with recorded steps
};

}  // namespace baton::dist
