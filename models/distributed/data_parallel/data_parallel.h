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
#include "models/distributed/data_parallel/power_sgd.h"
#include "models/distributed/data_parallel/step_clock.h"
#include "models/nn/module.h"
#include "rpc/collectives/process_group.h"

namespace baton::dist {

struct DataParallelOptions {
  BucketSizes buckets{};
  // In which gradients travel and are added up: bf16 or f16 halve the bytes.
  // Unset: their own.
  std::optional<DType> travel_as{};
  // Gradients travel as matrices of so few columns (power_sgd.h); 0: as they
  // are. Then they must be finite, and go neither with travel_as nor with
  // uneven_inputs nor with shard_optimizer.
  int power_sgd_rank = 0;
  // Running statistics and other buffers are rank 0's after each step.
  bool broadcast_buffers = true;
  // Members may have different numbers of steps: see Join.
  bool uneven_inputs = false;
  // Each member steps a part of the parameters alone, and has the optimizer's
  // state of that part (ZeRO-1): see shards(). Neither with uneven_inputs nor
  // with travel_as.
  bool shard_optimizer = false;
};

// A model whose every member of a group has a copy, and trains it on inputs of
// its own: after Backward each parameter's gradient is the mean over the
// members, and optimizers that are the same step them to the same values, bit
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
// Gradients lie in buckets, which are reduced while backward goes on. In the
// first step their order is the parameters', backwards; from the second on it
// is the one in which gradients were there first, at the first member.
// Gradients are views of the buckets, and change with the next Backward. A
// parameter that no member's loss reaches keeps the gradient that it has; one
// that some reach gets a mean in which the others count as 0. All members call
// the same in the same order; what goes wrong at one breaks the group.
//
// On a GPU, which all members must have, all that follows waits there for the
// gradients, and no call waits for the GPU: what goes wrong on it is the error
// of a later call, and the group's status. So whole steps can be recorded
// (nn::GraphedStep), all of one number of gradients, once two steps or more
// have been taken as they are; their replays fail as the group does.
// Thread-compatible.
class DataParallel {
 public:
  // Waits for all members; parameters and buffers are rank 0's from then on.
  // The module must outlive this; what is moved or cast later is not followed.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Make(
      nn::Module& module, std::shared_ptr<rpc::ProcessGroup> group,
      const DataParallelOptions& options = {});

  // Of a loss, or of several values weighted by their gradients. Adds to
  // gradients that are there: those of AccumulateBackward, above all.
  absl::Status Backward(const Variable& loss);
  absl::Status Backward(const std::vector<Variable>& outputs,
                        const std::vector<Tensor>& grad_outputs);
  // The same through the calls of a context, to other workers too. What is no
  // parameter of the module here, and what is at other workers, leaves its
  // gradient in the context. Such steps are not recorded.
  absl::Status Backward(Context& ctx, const Variable& loss,
                        BackwardOptions options = {});
  // Of this member alone, to be reduced with the next Backward's: of several
  // micro-batches all but the last go this way (PyTorch's no_sync).
  static absl::Status AccumulateBackward(const Variable& loss);

  // With uneven_inputs, once this member has no more steps: takes part in those
  // of the others, with nothing to give, until all have come here. The mean is
  // over the members that take a step. In the end parameters and buffers are
  // those of a member that was among the last; optimizers' state is as it is.
  absl::Status Join();

  // With shard_optimizer: what this member's optimizer steps, flat parts of the
  // parameters, one for each bucket; rules that go element by element step them
  // as they step the parameters. Backward gives them their gradients, in the
  // place of former ones and of the parameters', and after the step all take
  // the other members' parts:
  //   optim::Adam adam(parallel->shards());
  //   ...
  //   RETURN_IF_ERROR(parallel->Backward(loss));
  //   adam.Step();
  //   RETURN_IF_ERROR(parallel->GatherParameters());
  // A parameter that no loss reaches has a gradient of zeros. Memory order of
  // parameters and buckets stays that of the first step. On a GPU the parts
  // come in the order in which a forward wants them, and nobody waits for all:
  // there a recorded step best begins with it.
  const std::vector<Variable>& shards() const { return shards_; }
  absl::Status GatherParameters();

  rpc::ProcessGroup& group() const { return *group_; }
  size_t buckets() const { return buckets_->size(); }
  DataParallelFigures figures() const;

 private:
  class Pass;
  // What is read of the buffers of the root, and where it travels.
  struct Buffers {
    std::vector<Tensor> tensors;
    FlatTensor flat;
  };
  DataParallel(nn::Module& module, std::shared_ptr<rpc::ProcessGroup> group,
               const DataParallelOptions& options);

  absl::Status BroadcastModel(int root);
  void GroupBuffers(const std::vector<Tensor>& all);
  // What this member does with gradients and parameters on its GPU, if it has
  // them there, goes to the stream of the collectives.
  Stream stream() const;
  bool on_gpu() const { return stream().device().is_cuda(); }
  // Until the GPU has ended what former calls gave it; or at once, where they
  // are of the CPU or recorded.
  absl::Status AwaitFormer();
  absl::Status AwaitOrLeave(std::vector<Future<void>> calls);
  // Moves the parameters into buckets, and makes the shards.
  void Shard();
  Tensor ShardOf(const Tensor& all) const;
  void LeaveGradients();
  // Of the step that all are about to take, or of Join.
  absl::Status MeetOthers(bool has_inputs);
  // Aborts the group where `backward`, or what follows it, fails.
  using Backwards = std::function<absl::Status(const LeafTaker& take)>;
  absl::Status Run(const Backwards& backward);
  absl::Status Reduce(const Backwards& backward);
  absl::Status FollowOthers();
  absl::Status AdoptOrder(const std::vector<size_t>& order);

  const std::shared_ptr<rpc::ProcessGroup> group_;
  const DataParallelOptions options_;
  std::vector<Variable> all_parameters_;
  std::vector<Variable> parameters_;  // those that require gradients
  std::unordered_map<const void*, size_t> places_;  // of these, by id
  std::vector<Buffers> buffers_;
  std::unique_ptr<GradientBuckets> buckets_;
  std::unique_ptr<PowerSgd> power_sgd_;  // null: gradients are as they are
  bool order_known_ = false;
  bool settled_ = false;  // a step has been taken
  // By parameter, of the last step: whether this member had a gradient, and
  // whether some did.
  std::vector<uint8_t> own_have_, some_have_;
  std::vector<FlatTensor> weights_;  // by bucket, where they are sharded
  std::vector<Variable> shards_;
  // Of the present step.
  int root_ = 0;                      // whose buffers count
  int active_ = 0;                    // members that take it
  std::vector<Future<void>> former_;  // which the GPU may not have ended
  std::shared_ptr<StepClock> clock_;  // recorded steps have it too
};

}  // namespace baton::dist
