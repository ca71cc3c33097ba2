// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/remote_resnet.h"

#include <utility>

#include "core/status.h"
#include "models/distributed/stock.h"

namespace baton::examples {
rpc::Registry MakeRegistry() {
  rpc::Registry registry;
  dist::RegisterStock(registry);
  return registry;
}

absl::StatusOr<std::unique_ptr<RemoteResNet>> RemoteResNet::Make(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    const Settings& settings, const Options& options) {
  const size_t count = options.cuts.size() + 1;
  const dist::ScheduleChoice usual;
  ASSIGN_OR_RETURN(const std::vector<int> placed,
                   dist::PlaceStages(count == 1 ? usual : settings.schedule,
                                     static_cast<int>(count),
                                     static_cast<int>(workers.size())));
  std::unique_ptr<RemoteResNet> model(new RemoteResNet(agent));
  std::vector<Future<dist::Module<dist::ResNetStage>>> making;
  for (size_t i = 0; i < count; ++i) {
    making.push_back(dist::Module<dist::ResNetStage>::Create(
        agent, workers[static_cast<size_t>(placed[i])], settings.model,
        options.cuts, static_cast<int>(i)));
  }
  // These calls end by --rpc_timeout.
  ASSIGN_OR_RETURN(model->stages_, WaitAll(making).Await(kNoLimit));
  std::vector<dist::StageModule> stages(model->stages_.begin(),
                                        model->stages_.end());
  std::vector<dist::ParameterSource> sources;
  for (const auto& stage : model->stages_)
    sources.push_back(dist::ParameterSource(stage.ref()).Named(""));
  ASSIGN_OR_RETURN(
      model->pipeline_,
      dist::Pipeline::Make(
          agent,
          {.split_size = options.split_size,
           .schedule = options.split_size > 0 ? settings.schedule : usual,
           .loss = settings.loss,
           .checkpoint = settings.checkpoint_activations,
           .graph = settings.graph,
           .compute_threads = options.compute_threads},
          stages));
  model->sgd_ = std::make_unique<dist::Optimizer<optim::Sgd>>(
      agent, settings.sgd, sources);
  RETURN_IF_ERROR(model->sgd_->Ready().Await(kNoLimit));
  return model;
}

absl::StatusOr<double> RemoteResNet::TrainStep(const TrainingBatch& batch) {
  ASSIGN_OR_RETURN(const dist::Pipeline::StepResult result,
                   pipeline_->Step(*sgd_, batch.images, batch.targets));
  if (++steps_ > warm_up_steps()) bubbles_ += result.bubble;
  return result.loss;
}

int RemoteResNet::warm_up_steps() const {
  return pipelined() && pipeline_->options().schedule.name == "auto" ? 2 : 1;
}

std::vector<Detail> RemoteResNet::Details() const {
  const int measured = steps_ - warm_up_steps();
  const absl::StatusOr<dist::Simulation> predicted = pipeline_->Predict();
  if (!pipelined() || measured < 1 || !predicted.ok()) return {};
  return DetailsOf({.schedule = schedule()->name,
                    .bubble = bubbles_ / measured,
                    .predicted_bubble = predicted->bubble(),
                    .held = predicted->most_held()});
}

const dist::Schedule* RemoteResNet::schedule() const {
  return pipelined() ? pipeline_->schedule() : nullptr;
}

absl::StatusOr<dist::Pipeline::EvalResult> RemoteResNet::Evaluate(
    const TrainingBatch& batch) {
  return pipeline_->Evaluate(batch.images, batch.targets);
}

absl::StatusOr<std::unique_ptr<dist::Checkpointer>>
RemoteResNet::MakeCheckpointer(const CheckpointOptions& options) {
  return dist::Checkpointer::Make(
      agent_, options,
      std::vector<dist::SavedModule>(stages_.begin(), stages_.end()), {*sgd_});
}

}  // namespace baton::examples
