// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/parameter_server_batch/batch_trainer.h"

#include <optional>
#include <utility>

#include "core/status.h"
#include "examples/support/pushing.h"
#include "models/data/open.h"
#include "models/nn/loss.h"

namespace baton::examples {
namespace {

// If the server is on this machine, packs the gradients into shared memory.
GradientReport ReportTo(const RRef<BatchServer>& server,
                        const rpc::Agent& agent, const FlatModel& flat,
                        double loss) {
  return flat.Report(loss, [&](const Shape& shape) {
    auto shared = agent.EmptyFor(server.owner(), shape);
    return shared.ok() ? *std::move(shared) : Tensor::Empty(shape);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTrainer>> BatchTrainer::Make(
    rpc::CallContext&, const BatchTask& task, const RRef<BatchServer>& server,
    int64_t number) {
  ASSIGN_OR_RETURN(auto dataset, data::OpenDataset(task.data));
  data::LoaderOptions options;
  options.batch = task.batch;
  options.shuffle = true;
  options.drop_last = dataset->size() >= task.batch;
  options.seed = task.seed + static_cast<uint64_t>(number);
  options.workers = 1;
  options.transform = data::CifarTraining();
  ASSIGN_OR_RETURN(auto loader,
                   data::Loader::Make(std::move(dataset), std::move(options)));
  ASSIGN_OR_RETURN(auto model, models::ResNet::Make(task.model));
  ASSIGN_OR_RETURN(FlatModel flat, FlatModel::Make(*model));
  return std::unique_ptr<BatchTrainer>(new BatchTrainer(
      std::move(model), std::move(flat), std::move(loader), server));
}

absl::StatusOr<data::Batch> BatchTrainer::NextBatch() {
  ASSIGN_OR_RETURN(std::optional<data::Batch> batch, loader_->Next());
  if (batch.has_value()) return *std::move(batch);
  loader_->StartEpoch(loader_->epoch() + 1);
  ASSIGN_OR_RETURN(batch, loader_->Next());
  return *std::move(batch);
}

GradientReport BatchTrainer::ReportOn(const rpc::Agent& agent,
                                      const data::Batch& batch) {
  model_->ZeroGrad();
  const Variable loss =
      nn::CrossEntropy(model_->Forward(batch.images), batch.labels);
  loss.Backward();
  return ReportTo(server_, agent, flat_, loss.tensor().Item());
}

absl::StatusOr<int64_t> BatchTrainer::Train(rpc::CallContext& call) {
  ASSIGN_OR_RETURN(ModelState state,
                   server_.Async<&BatchServer::Join>().Await(kNoLimit));
  int64_t reports = 0;
  for (; !state.over; ++reports) {
    RETURN_IF_ERROR(call.token().reason());
    flat_.CopyFrom(state);
    ASSIGN_OR_RETURN(const data::Batch batch, NextBatch());
    ASSIGN_OR_RETURN(
        state,
        server_.Async<&BatchServer::Report>(ReportOn(call.agent(), batch))
            .Await(kNoLimit));
  }
  RETURN_IF_ERROR(server_.Async<&BatchServer::Leave>().Await(kNoLimit));
  return reports;
}

absl::StatusOr<std::unique_ptr<ReportPusher>> ReportPusher::Make(
    rpc::CallContext&, const BatchTask& task, const RRef<BatchServer>& server) {
  ASSIGN_OR_RETURN(auto model, models::ResNet::Make(task.model));
  for (Variable& parameter : model->Parameters())
    parameter.AccumulateGrad(Tensor::ZerosLike(parameter.tensor()));
  ASSIGN_OR_RETURN(FlatModel flat, FlatModel::Make(*model));
  return std::unique_ptr<ReportPusher>(
      new ReportPusher(std::move(model), std::move(flat), server));
}

absl::StatusOr<int64_t> ReportPusher::Join() {
  ASSIGN_OR_RETURN(const ModelState state,
                   server_.Async<&BatchServer::Join>().Await(kNoLimit));
  return static_cast<int64_t>(state.parameters.nbytes() +
                              state.buffers.nbytes());
}

absl::StatusOr<double> ReportPusher::Run(rpc::CallContext& call,
                                         int64_t pushes) {
  const auto rate = PushesPerSecond(pushes, [&] {
    RETURN_IF_ERROR(call.token().reason());
    return server_
        .Async<&BatchServer::Report>(ReportTo(server_, call.agent(), flat_, 0))
        .Await(kNoLimit)
        .status();
  });
  RETURN_IF_ERROR(server_.Async<&BatchServer::Leave>().Await(kNoLimit));
  return rate;
}

void RegisterBatchTraining(rpc::Registry& registry) {
  registry.Add<BatchServer>();
  registry.Add<BatchTrainer>();
  registry.Add<ReportPusher>();
}

}  // namespace baton::examples
