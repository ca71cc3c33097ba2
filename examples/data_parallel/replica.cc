// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/data_parallel/replica.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "autograd/functions/cast.h"
#include "core/random.h"
#include "core/status.h"
#include "core/stream.h"
#include "models/data/open.h"
#include "models/distributed/data_parallel/sync_batch_norm.h"
#include "models/nn/loss.h"
#include "rpc/tracer.h"

namespace baton::examples {
namespace {

void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) throw Error(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Replica>> Replica::Make(
    rpc::CallContext& call, const ReplicaTask& task) {
  std::unique_ptr<Replica> replica(new Replica());
  RETURN_IF_ERROR(replica->Prepare(call, task));
  return replica;
}

absl::Status Replica::Prepare(rpc::CallContext& call, const ReplicaTask& task) {
  task_ = task;
  compute_ = call.agent().self().compute;
  if (task.power_sgd_rank > 0 && compute_.dtype == DType::kF16) {
    return absl::InvalidArgumentError(
        "--power_sgd_rank keeps a gradient that has overflowed: take "
        "--dtype=bf16");
  }
  rpc::GroupOptions options;
  options.name = absl::StrJoin(task.members, "+");
  options.members = task.members;
  options.timeout = std::chrono::milliseconds(task.timeout_ms);
  ASSIGN_OR_RETURN(
      group_,
      rpc::ProcessGroup::Make(call.agent(), options).Await(options.timeout));
  RETURN_IF_ERROR(group_->Takes(compute_.device));
  RETURN_IF_ERROR(OpenImages(task, group_->rank(), group_->size()));
  models::ResNetOptions model = task.model;
  if (loader_ != nullptr) {
    model.num_classes =
        static_cast<int64_t>(loader_->dataset().classes().size());
  }
  ASSIGN_OR_RETURN(model_, models::ResNet::Make(model));
  RETURN_IF_ERROR(CatchErrors([&] {
    if (compute_.device.is_cpu()) return;
    model_->ToFormat(model.format);
    if (compute_.dtype != DType::kF32) model_->LowerPrecision(compute_.dtype);
    model_->To(compute_.device);
  }));
  if (task.together) dist::SynchroniseBatchNorms(*model_, group_);
  dist::DataParallelOptions parallel;
  parallel.buckets.others = static_cast<size_t>(task.bucket);
  if (task.half) parallel.travel_as = DType::kBF16;
  parallel.shard_optimizer = task.shard;
  parallel.power_sgd_rank = task.power_sgd_rank;
  ASSIGN_OR_RETURN(parallel_,
                   dist::DataParallel::Make(*model_, group_, parallel));
  if (task.average_every > 0) {
    ASSIGN_OR_RETURN(averager_,
                     dist::ModelAverager::Make(
                         *model_, group_,
                         {.kind = task.gossip ? dist::Averaging::kGossip
                                              : dist::Averaging::kPeriodic,
                          .period = task.average_every}));
  }
  return CatchErrors([&] { PrepareStep(); });
}

void Replica::PrepareStep() {
  const std::vector<Variable>& stepped =
      task_.shard ? parallel_->shards() : model_->Parameters();
  optimizer_ = std::make_unique<optim::Any>(stepped, task_.optimizer);
  if (compute_.dtype == DType::kF16) {
    scaler_ = std::make_unique<optim::GradScaler>(
        std::vector<Device>{compute_.device}, optim::GradScalerOptions());
  }
  // A step with an averager is not recorded, because only some steps average.
  if (!task_.graph || compute_.device.is_cpu() || averager_) return;
  step_ = std::make_unique<nn::GraphedStep>(
      [this](const std::vector<Tensor>& batch) {
        return std::vector<Tensor>{Train(batch[0], batch[1])};
      },
      std::vector<Device>{compute_.device}, model_->Parameters());
}

absl::Status Replica::OpenImages(const ReplicaTask& task, int rank, int ranks) {
  if (task.data.empty()) {
    Generator generator(task.seed + static_cast<uint64_t>(rank));
    images_.images =
        RandNormal({task.batch, task.model.in_channels, task.image, task.image},
                   generator)
            .Contiguous(task.model.format);
    images_.labels =
        RandInt(0, task.model.num_classes, {task.batch}, generator);
    return CatchErrors([&] {
      images_.images = images_.images.To(compute_.device);
      images_.labels = images_.labels.To(compute_.device);
    });
  }
  ASSIGN_OR_RETURN(auto dataset, data::OpenDataset(task.data));
  data::LoaderOptions options;
  options.batch = task.batch;
  options.seed = task.seed + static_cast<uint64_t>(rank);
  options.workers = 1;
  options.drop_last = dataset->size() >= task.batch * ranks;
  options.sampler = std::make_shared<data::DistributedSampler>(
      dataset->size(), data::DistributedSamplerOptions{
                           .ranks = ranks, .rank = rank, .seed = task.seed});
  ASSIGN_OR_RETURN(loader_,
                   data::Loader::Make(std::move(dataset), std::move(options)));
  return absl::OkStatus();
}

absl::StatusOr<data::Batch> Replica::NextBatch() {
  if (loader_ == nullptr) return images_;
  ASSIGN_OR_RETURN(std::optional<data::Batch> batch, loader_->Next());
  if (batch.has_value()) return *std::move(batch);
  loader_->StartEpoch(loader_->epoch() + 1);
  ASSIGN_OR_RETURN(batch, loader_->Next());
  return *std::move(batch);
}

Variable Replica::Forward(const Tensor& images, const Tensor& labels) {
  const rpc::TraceSpan span(*group_->agent().tracer(), dist::kDataParallelTrack,
                            [] { return "forward"; });
  Variable logits = (*model_)(model_->Placed(images));
  if (IsHalf(logits.dtype())) logits = autograd::Cast(logits, DType::kF32);
  return nn::CrossEntropy(logits, labels);
}

// With sharded optimizers, the other replicas' parameters arrive while the
// forward begins.
Tensor Replica::Train(const Tensor& images, const Tensor& labels) {
  if (task_.shard) ThrowIfError(parallel_->GatherParameters());
  optimizer_->ZeroGrad();
  const Variable loss = Forward(images, labels);
  const Tensor scale = scaler_ ? scaler_->scale(compute_.device) : Tensor();
  if (averager_ || (group_->size() == 1 && !task_.shard)) {
    loss.Backward(scale);
  } else {
    ThrowIfError(parallel_->Backward({loss}, {scale}));
  }
  {
    const rpc::TraceSpan span(*group_->agent().tracer(),
                              dist::kDataParallelTrack,
                              [] { return "optimizer"; });
    scaler_ ? scaler_->Step(*optimizer_) : optimizer_->Step();
  }
  if (averager_) ThrowIfError(averager_->Step());
  return loss.tensor();
}

absl::StatusOr<ReplicaSteps> Replica::Step(int64_t count) {
  if (count < 1) return absl::InvalidArgumentError("no steps to take");
  std::vector<data::Batch> batches;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(data::Batch batch, NextBatch());
    batches.push_back(std::move(batch));
  }
  const auto begin = std::chrono::steady_clock::now();
  const dist::DataParallelFigures before = parallel_->figures();
  ReplicaSteps steps;
  RETURN_IF_ERROR(CatchErrors([&] {
    std::vector<Tensor> losses;
    for (const data::Batch& batch : batches) {
      const Tensor images = batch.images.To(compute_.device);
      const Tensor labels = batch.labels.To(compute_.device);
      const Tensor loss =
          step_ ? step_->Run({images, labels})[0] : Train(images, labels);
      losses.push_back(loss.Clone());  // the next replay writes it
    }
    Synchronize(compute_.device);
    for (const Tensor& loss : losses) steps.losses.push_back(loss.Item());
  }));
  // Replays of a broken group end without an error of their own.
  RETURN_IF_ERROR(group_->status());
  const auto each = static_cast<double>(count);
  steps.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count() /
      each;
  const dist::DataParallelFigures after = parallel_->figures();
  steps.waited_s = (after.waited_s - before.waited_s) / each;
  steps.bytes = (after.bytes - before.bytes) / count;
  for (const auto& [name, tensor] : optimizer_->SharedState())
    if (tensor.rank() > 0) steps.state_bytes += tensor.nbytes();
  if (step_ != nullptr) steps.kernels = step_->kernels();
  return steps;
}

absl::StatusOr<double> Replica::Checksum() {
  if (task_.shard) RETURN_IF_ERROR(parallel_->GatherParameters());
  if (averager_) RETURN_IF_ERROR(averager_->AverageAll());
  return CatchErrors([&]() -> absl::StatusOr<double> {
    double sum = 0;
    for (const Variable& parameter : model_->Parameters()) {
      const Tensor values = parameter.tensor().To(DType::kF32);
      for (const float value : values.ToVector<float>()) sum += value;
    }
    return sum;
  });
}

}  // namespace baton::examples
