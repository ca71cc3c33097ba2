// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/data_parallel/replica.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/random.h"
#include "core/status.h"
#include "models/data/open.h"
#include "models/nn/loss.h"

namespace baton::examples {

absl::StatusOr<std::unique_ptr<Replica>> Replica::Make(
    rpc::CallContext& call, const ReplicaTask& task) {
  std::unique_ptr<Replica> replica(new Replica());
  RETURN_IF_ERROR(replica->Prepare(call, task));
  return replica;
}

absl::Status Replica::Prepare(rpc::CallContext& call, const ReplicaTask& task) {
  rpc::GroupOptions options;
  options.name = absl::StrJoin(task.members, "+");
  options.members = task.members;
  options.timeout = std::chrono::milliseconds(task.timeout_ms);
  ASSIGN_OR_RETURN(
      group_,
      rpc::ProcessGroup::Make(call.agent(), options).Await(options.timeout));
  RETURN_IF_ERROR(OpenImages(task, group_->rank(), group_->size()));
  models::ResNetOptions model = task.model;
  if (loader_ != nullptr) {
    model.num_classes =
        static_cast<int64_t>(loader_->dataset().classes().size());
  }
  ASSIGN_OR_RETURN(model_, models::ResNet::Make(model));
  dist::DataParallelOptions parallel;
  if (task.half) parallel.travel_as = DType::kBF16;
  parallel.shard_optimizer = task.shard;
  ASSIGN_OR_RETURN(parallel_,
                   dist::DataParallel::Make(*model_, group_, parallel));
  return CatchErrors([&] {
    optimizer_ = std::make_unique<optim::Any>(
        task.shard ? parallel_->shards() : model_->Parameters(),
        task.optimizer);
  });
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
    return absl::OkStatus();
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

absl::StatusOr<ReplicaStep> Replica::Step() {
  ASSIGN_OR_RETURN(const data::Batch batch, NextBatch());
  const auto begin = std::chrono::steady_clock::now();
  const dist::DataParallelFigures before = parallel_->figures();
  ReplicaStep step;
  RETURN_IF_ERROR(CatchErrors([&]() -> absl::Status {
    optimizer_->ZeroGrad();
    const Variable loss =
        nn::CrossEntropy(model_->Forward(batch.images), batch.labels);
    RETURN_IF_ERROR(parallel_->Backward(loss));
    optimizer_->Step();
    RETURN_IF_ERROR(parallel_->GatherParameters());
    step.loss = loss.tensor().Item();
    return absl::OkStatus();
  }));
  const dist::DataParallelFigures& after = parallel_->figures();
  step.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  step.waited_s = after.waited_s - before.waited_s;
  step.bytes = after.bytes - before.bytes;
  for (const auto& [name, tensor] : optimizer_->SharedState())
    if (tensor.rank() > 0) step.state_bytes += tensor.nbytes();
  return step;
}

double Replica::Checksum() const {
  double sum = 0;
  for (const Variable& parameter : model_->Parameters())
    for (const float value : parameter.tensor().ToVector<float>()) sum += value;
  return sum;
}

void RegisterReplicas(rpc::Registry& registry) {
  rpc::RegisterCollectives(registry);
  registry.Add<Replica>();
}

}  // namespace baton::examples
