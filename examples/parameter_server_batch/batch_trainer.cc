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
  return std::unique_ptr<BatchTrainer>(
      new BatchTrainer(std::move(model), std::move(loader), server));
}

absl::StatusOr<data::Batch> BatchTrainer::NextBatch() {
  ASSIGN_OR_RETURN(std::optional<data::Batch> batch, loader_->Next());
  if (batch.has_value()) return *std::move(batch);
  loader_->StartEpoch(loader_->epoch() + 1);
  ASSIGN_OR_RETURN(batch, loader_->Next());
  return *std::move(batch);
}

GradientReport BatchTrainer::ReportOn(const data::Batch& batch) {
  model_->ZeroGrad();
  const Variable loss =
      nn::CrossEntropy(model_->Forward(batch.images), batch.labels);
  loss.Backward();
  GradientReport report{.gradients = {},
                        .buffers = BuffersOf(*model_),
                        .loss = loss.tensor().Item()};
  for (const Variable& parameter : model_->Parameters())
    report.gradients.push_back(parameter.grad());
  return report;
}

absl::StatusOr<int64_t> BatchTrainer::Train(rpc::CallContext& call) {
  ASSIGN_OR_RETURN(ModelState state,
                   server_.Async<&BatchServer::Join>().Await(kNoLimit));
  int64_t reports = 0;
  for (; !state.over; ++reports) {
    RETURN_IF_ERROR(call.token().reason());
    CopyTo(state, *model_);
    ASSIGN_OR_RETURN(const data::Batch batch, NextBatch());
    ASSIGN_OR_RETURN(
        state,
        server_.Async<&BatchServer::Report>(ReportOn(batch)).Await(kNoLimit));
  }
  RETURN_IF_ERROR(server_.Async<&BatchServer::Leave>().Await(kNoLimit));
  return reports;
}

absl::StatusOr<std::unique_ptr<ReportPusher>> ReportPusher::Make(
    rpc::CallContext&, const RRef<BatchServer>& server) {
  return std::unique_ptr<ReportPusher>(new ReportPusher(server));
}

absl::StatusOr<int64_t> ReportPusher::Join() {
  ASSIGN_OR_RETURN(const ModelState state,
                   server_.Async<&BatchServer::Join>().Await(kNoLimit));
  int64_t bytes = 0;
  for (const Tensor& parameter : state.parameters) {
    report_.gradients.push_back(Tensor::ZerosLike(parameter));
    bytes += static_cast<int64_t>(parameter.nbytes());
  }
  for (const Tensor& buffer : state.buffers) {
    report_.buffers.push_back(buffer.Clone());
    bytes += static_cast<int64_t>(buffer.nbytes());
  }
  return bytes;
}

absl::StatusOr<double> ReportPusher::Run(rpc::CallContext& call,
                                         int64_t pushes) {
  const auto rate = PushesPerSecond(pushes, [&] {
    RETURN_IF_ERROR(call.token().reason());
    return server_.Async<&BatchServer::Report>(report_)
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
