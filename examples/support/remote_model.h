// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "autograd/functions/cast.h"
#include "core/status.h"
#include "examples/support/pipeline_settings.h"
#include "examples/support/planning.h"
#include "examples/support/remote_stages.h"
#include "examples/support/trainable.h"
#include "models/distributed/checkpoint.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/profile.h"
#include "models/distributed/recovery.h"
#include "models/nn/loss.h"
#include "optim/any.h"
#include "optim/distributed/optimizer.h"
#include "optim/schedule.h"
#include "rpc/agent.h"

namespace baton::examples {

// A model whose stages live at workers and are trained as a pipeline. Each
// stage M is made from options, cuts and an index. Must not outlive the agent.
// Confined to one thread.
template <typename M>
class RemoteModel final : public Trainable {
 public:
  struct Spec {
    dist::profile_calls::OptionsOf<M> model;
    optim::AnyOptions optimizer;
    // The schedule of the learning rate; null: the rate stays as it is.
    optim::Schedule rates = nullptr;
    // Returns the routes of so many stages; null: the stages are a chain.
    std::function<std::vector<dist::StageRoute>(int stages)> routes = nullptr;
  };
  struct Options {
    std::vector<std::string> cuts;
    int64_t split_size = 0;                   // 0: the whole batch at once
    std::vector<int64_t> micro_batches = {};  // replaces split_size
    int compute_threads = 0;  // per stage; 0: the worker's own setting
    // Places all stages at the first worker, on its devices in turn. The
    // schedule then is gpipe, whatever the settings say, unless `devices` names
    // the devices to use.
    bool local = false;
    std::vector<Device> devices = {};
    // Trains without a pipeline: the trainer calls the forward of one stage
    // after the other, computes the loss and runs a distributed backward. With
    // settings.graph, stages on GPUs are replayed.
    bool calls = false;
  };
  // Places the stages as the schedule needs them, one at each worker if there
  // are enough; errors name the worker that could not make its stage. A
  // pipeline over several workers has settings.replicas copies, each at an
  // equal share of the workers, in their order.
  static absl::StatusOr<std::unique_ptr<RemoteModel>> Make(
      rpc::Agent& agent, const std::vector<std::string>& workers,
      const Spec& spec, const PipelineSettings& settings,
      const Options& options);

  absl::StatusOr<double> TrainStep(const TrainingBatch& batch) override;
  size_t most_under_way() const override;
  absl::Status BeginStep(const TrainingBatch& batch) override;
  absl::StatusOr<double> AwaitStep() override;
  // Moves the batch to this process's device: workers on this machine can read
  // it from a GPU's memory without copying it through the host.
  absl::StatusOr<TrainingBatch> Place(const TrainingBatch& batch) override {
    return CatchErrors([&]() -> absl::StatusOr<TrainingBatch> {
      return TrainingBatch{batch.inputs.To(agent_.self().compute.device),
                           batch.targets.To(agent_.self().compute.device)};
    });
  }
  int warm_up_steps() const override { return pipeline().warm_up_steps(); }
  std::vector<Detail> Details() const override;
  int64_t KernelsReplayed() const { return pipeline().KernelsReplayed(); }
  // Returns those of all copies.
  absl::StatusOr<std::vector<dist::PipelineLink>> Links() const override {
    std::vector<dist::PipelineLink> all;
    for (const Copy& copy : copies_) {
      ASSIGN_OR_RETURN(const auto links, pipeline(copy).Links());
      all.insert(all.end(), links.begin(), links.end());
    }
    return all;
  }
  const dist::Schedule* schedule() const override {
    return pipelined_ ? pipeline().schedule() : nullptr;
  }
  absl::StatusOr<dist::Pipeline::EvalResult> Evaluate(
      const TrainingBatch& batch) {
    const auto& recovered = copies_[0].recovered;
    return recovered ? recovered->Evaluate(batch.inputs, batch.targets)
                     : pipeline().Evaluate(batch.inputs, batch.targets);
  }
  // Returns null if the pipeline is not recoverable.
  const dist::RecoverablePipeline* recovered() const {
    return copies_[0].recovered.get();
  }
  // Calls RecoverablePipeline::Note if the pipeline is recoverable.
  void Note(NamedTensors state) {
    copies_[0].recovered->Note(std::move(state));
  }
  std::optional<dist::Checkpointer::Resumed> resumed() const {
    const auto& recovered = copies_[0].recovered;
    return recovered ? recovered->resumed() : std::nullopt;
  }
  // Call this after a checkpoint or weights were loaded, with the state to note
  // if the pipeline is recoverable.
  absl::Status Keep(NamedTensors noted) const {
    const auto& recovered = copies_[0].recovered;
    if (!recovered) return absl::OkStatus();
    recovered->Note(std::move(noted));
    return recovered->Keep();
  }
  absl::Status Finish() const {
    const auto& recovered = copies_[0].recovered;
    return recovered ? recovered->Finish() : absl::OkStatus();
  }
  void set_schedule(const optim::Schedule& rates) {
    for (const Copy& copy : copies_) copy.optimizer->set_schedule(rates);
  }

  // Returns a checkpointer of the weights, under their names in the whole
  // model, and of the optimizer; of several copies it saves only the first.
  // This model must outlive it. If the pipeline is recoverable, the
  // checkpointer must live as long as steps are taken, because a recovery may
  // resume from its checkpoints.
  absl::StatusOr<std::unique_ptr<dist::Checkpointer>> MakeCheckpointer(
      const CheckpointOptions& options) {
    const Copy& copy = copies_[0];
    ASSIGN_OR_RETURN(auto made, dist::Checkpointer::Make(
                                    agent_, options,
                                    std::vector<dist::SavedModule>(
                                        copy.stages.begin(), copy.stages.end()),
                                    {*copy.optimizer}));
    if (copy.recovered && !options.folder.empty())
      copy.recovered->set_checkpoints(made.get());
    return made;
  }

 private:
  using StageHandle = dist::Module<M>;
  struct Copy {
    std::vector<StageHandle> stages;
    std::unique_ptr<dist::Optimizer<optim::Any>> optimizer;
    // One of these two is set.
    std::unique_ptr<dist::Pipeline> pipeline;
    std::unique_ptr<dist::RecoverablePipeline> recovered;
  };
  explicit RemoteModel(rpc::Agent& agent) : agent_(agent) {}

  absl::StatusOr<Copy> MakeCopy(const std::vector<std::string>& workers,
                                const Spec& spec,
                                const PipelineSettings& settings,
                                const Options& options) const;
  absl::Status MakePipeline(const Spec& spec,
                            const dist::PipelineOptions& pipeline,
                            const PipelineSettings& settings,
                            const Options& options, Copy& copy) const;
  static dist::Pipeline& pipeline(const Copy& copy) {
    return copy.recovered ? copy.recovered->pipeline() : *copy.pipeline;
  }
  dist::Pipeline& pipeline() const { return pipeline(copies_[0]); }

  absl::StatusOr<double> CallStages(const TrainingBatch& batch);

  rpc::Agent& agent_;
  bool pipelined_ = false;
  std::vector<StageHandle> called_;  // for Options::calls
  dist::Loss loss_ = dist::Loss::kMse;
  std::vector<Copy> copies_;
  // The steps of all copies; empty if the pipeline is recoverable.
  std::deque<Future<std::vector<dist::Pipeline::StepResult>>> under_way_;
};

// Returns how ChooseStages measures and tries such models. The agent must
// outlive it.
template <typename M>
PlannedModel PlannedRemoteModel(rpc::Agent& agent,
                                const typename RemoteModel<M>::Spec& spec) {
  // A parameter has a weight, a gradient and the optimizer's state.
  return {.parameter_copies = 2.0 + spec.optimizer.state_tensors(),
          .measure =
              [&agent, spec](const std::vector<std::string>& workers,
                             const dist::ProfileRequest& request,
                             std::chrono::milliseconds timeout) {
                return dist::ProfileCluster<M>(agent, workers, spec.model,
                                               request, timeout);
              },
          .make = [&agent, spec](const std::vector<std::string>& workers,
                                 const PipelineSettings& settings)
              -> absl::StatusOr<std::unique_ptr<Trainable>> {
            typename RemoteModel<M>::Options options = {.cuts = settings.cuts};
            if (settings.micro_batches.empty()) {
              options.split_size = settings.split_sizes[0];
            } else {
              options.micro_batches = settings.micro_batches[0];
            }
            return RemoteModel<M>::Make(agent, workers, spec, settings,
                                        options);
          },
          .on_gpus =
              [&agent](const std::vector<std::string>& workers) {
                return absl::c_all_of(workers, [&](const std::string& name) {
                  const auto found = agent.Find(name);
                  return found.ok() && found->compute.device.is_cuda();
                });
              }};
}

template <typename M>
auto RemoteModel<M>::MakeCopy(const std::vector<std::string>& workers,
                              const Spec& spec,
                              const PipelineSettings& settings,
                              const Options& options) const
    -> absl::StatusOr<Copy> {
  const bool ordered =
      pipelined_ && (!options.local || !options.devices.empty());
  const dist::ScheduleChoice schedule =
      ordered ? settings.schedule : dist::ScheduleChoice();
  Copy copy;
  ASSIGN_OR_RETURN(
      copy.stages,
      options.local
          ? MakeLocalStages<M>(agent_, workers.front(), options.devices,
                               spec.model, schedule, options.cuts)
          : MakeStages<M>(agent_, workers, spec.model, settings.schedule,
                          options.cuts));
  std::vector<dist::ParameterSource> sources;
  for (const StageHandle& stage : copy.stages)  // by names in the whole model
    sources.push_back(dist::ParameterSource(stage).Named(""));
  bool scales = false;
  for (const StageHandle& stage : copy.stages)
    scales |= stage.owner().compute.dtype == DType::kF16;
  copy.optimizer = std::make_unique<dist::Optimizer<optim::Any>>(
      agent_, spec.optimizer, sources);
  if (spec.rates) copy.optimizer->set_schedule(spec.rates);
  RETURN_IF_ERROR(MakePipeline(
      spec,
      {.split_size = options.split_size,
       .micro_batches = options.micro_batches,
       .schedule = schedule,
       .loss = settings.loss,
       .routes = spec.routes ? spec.routes(static_cast<int>(copy.stages.size()))
                             : std::vector<dist::StageRoute>(),
       .at_once = ordered ? settings.at_once : 1,
       .overlap = ordered && settings.overlap,
       .recompute = settings.recompute,
       .graph = settings.graph,
       .deferred_batch_norm = settings.deferred_batch_norm,
       .loss_scale =
           scales ? std::optional(optim::GradScalerOptions()) : std::nullopt,
       .compute_threads = options.compute_threads},
      settings, options, copy));
  RETURN_IF_ERROR(copy.optimizer->Ready().Await(kNoLimit));
  return copy;
}

template <typename M>
absl::Status RemoteModel<M>::MakePipeline(const Spec& spec,
                                          const dist::PipelineOptions& pipeline,
                                          const PipelineSettings& settings,
                                          const Options& options,
                                          Copy& copy) const {
  if (!settings.recover || !pipelined_ || options.local) {
    ASSIGN_OR_RETURN(copy.pipeline, dist::Pipeline::Make(agent_, pipeline,
                                                         {copy.stages.begin(),
                                                          copy.stages.end()}));
    return absl::OkStatus();
  }
  std::vector<dist::RecoveredModule> stages;
  for (size_t i = 0; i < copy.stages.size(); ++i) {
    stages.emplace_back(copy.stages[i],
                        [&agent = agent_, model = spec.model,
                         cuts = options.cuts, i](const rpc::Target& worker) {
                          return StageHandle::Create(agent, worker, model, cuts,
                                                     static_cast<int>(i));
                        });
  }
  ASSIGN_OR_RETURN(copy.recovered, dist::RecoverablePipeline::Make(
                                       agent_, pipeline,
                                       {.journal = settings.journal,
                                        .on_recovery =
                                            [](const dist::Recovery& recovery) {
                                              std::printf(
                                                  "recovered: %s\n",
                                                  recovery.ToString().c_str());
                                            }},
                                       stages, *copy.optimizer));
  return absl::OkStatus();
}

template <typename M>
absl::StatusOr<std::unique_ptr<RemoteModel<M>>> RemoteModel<M>::Make(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    const Spec& spec, const PipelineSettings& settings,
    const Options& options) {
  std::unique_ptr<RemoteModel> model(new RemoteModel(agent));
  model->loss_ = settings.loss;
  model->pipelined_ = options.split_size > 0 || !options.micro_batches.empty();
  const auto replicas = static_cast<size_t>(
      model->pipelined_ && !options.local ? settings.replicas : 1);
  if (workers.size() < replicas) {
    return absl::InvalidArgumentError(
        absl::StrCat("--replicas=", replicas, ": they take a worker each, of ",
                     workers.size()));
  }
  const size_t share = workers.size() / replicas;
  std::vector<dist::Pipeline*> pipelines;
  for (size_t i = 0; i < replicas; ++i) {
    const auto begin = workers.begin() + static_cast<std::ptrdiff_t>(i * share);
    ASSIGN_OR_RETURN(
        Copy copy,
        model->MakeCopy({begin, begin + static_cast<std::ptrdiff_t>(share)},
                        spec, settings, options));
    pipelines.push_back(copy.pipeline.get());
    model->copies_.push_back(std::move(copy));
  }
  if (replicas > 1)
    RETURN_IF_ERROR(dist::Pipeline::MakeReplicas(agent, pipelines));
  if (!options.calls) return model;
  for (const StageHandle& stage : model->copies_[0].stages) {
    model->called_.push_back(stage);
    if (!settings.graph) continue;
    ASSIGN_OR_RETURN(model->called_.back(), stage.Replayed().Await(kNoLimit));
  }
  return model;
}

template <typename M>
absl::StatusOr<double> RemoteModel<M>::TrainStep(const TrainingBatch& batch) {
  if (!called_.empty()) return CallStages(batch);
  RETURN_IF_ERROR(BeginStep(batch));
  return AwaitStep();
}

template <typename M>
size_t RemoteModel<M>::most_under_way() const {
  if (!called_.empty()) return 1;
  const auto& recovered = copies_[0].recovered;
  return recovered ? recovered->most_under_way()
                   : dist::Pipeline::kMostUnderWay;
}

template <typename M>
absl::Status RemoteModel<M>::BeginStep(const TrainingBatch& batch) {
  if (!called_.empty()) return Trainable::BeginStep(batch);
  if (const auto& recovered = copies_[0].recovered)
    return recovered->BeginStep(batch.inputs, batch.targets);
  const auto count = static_cast<int64_t>(copies_.size());
  const int64_t rows = batch.inputs.dim(0);
  if (rows % count != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", rows, " rows for ", count, " replicas"));
  }
  std::vector<Future<dist::Pipeline::StepResult>> steps;
  for (int64_t begin = 0; const Copy& copy : copies_) {
    const int64_t end = begin + rows / count;
    steps.push_back(copy.pipeline->StepAsync(
        *copy.optimizer, batch.inputs.Slice(0, begin, end),
        batch.targets.Slice(0, begin, end)));
    begin = end;
  }
  under_way_.push_back(WaitAll(steps));
  return absl::OkStatus();
}

template <typename M>
absl::StatusOr<double> RemoteModel<M>::AwaitStep() {
  if (!called_.empty()) return Trainable::AwaitStep();
  if (const auto& recovered = copies_[0].recovered) {
    ASSIGN_OR_RETURN(const auto result, recovered->AwaitStep());
    return result.loss;
  }
  const auto step = std::move(under_way_.front());
  under_way_.pop_front();
  ASSIGN_OR_RETURN(const auto results, step.Await(kNoLimit));
  double sum = 0;
  for (const auto& result : results) sum += result.loss;
  return sum / static_cast<double>(results.size());
}

template <typename M>
absl::StatusOr<double> RemoteModel<M>::CallStages(const TrainingBatch& batch) {
  dist::Context ctx(agent_);
  Future<Variable> value = called_.front().Forward(ctx, batch.inputs);
  for (size_t i = 1; i < called_.size(); ++i)
    value = called_[i].Forward(ctx, value);
  ASSIGN_OR_RETURN(Variable outputs, value.Await(kNoLimit));
  if (IsHalf(outputs.dtype())) outputs = autograd::Cast(outputs, DType::kF32);
  const Tensor targets = batch.targets.To(outputs.tensor().device());
  const Variable loss = loss_ == dist::Loss::kMse
                            ? nn::MseLoss(outputs, targets)
                            : nn::CrossEntropy(outputs, targets);
  RETURN_IF_ERROR(ctx.Backward(loss));
  RETURN_IF_ERROR(copies_[0].optimizer->Step(ctx));
  return loss.tensor().Item();
}

template <typename M>
std::vector<Detail> RemoteModel<M>::Details() const {
  std::vector<Detail> details;
  if (const int64_t kernels = KernelsReplayed(); kernels > 0)
    details.push_back({"kernels_per_step", kernels});
  const absl::StatusOr<dist::PipelineTiming> timing = pipeline().Timing();
  if (!pipelined_ || !timing.ok()) return details;
  const std::vector<Detail> figures = DetailsOf(*timing);
  details.insert(details.end(), figures.begin(), figures.end());
  const std::string why_not = pipeline().WhyNotRecorded();
  if (!why_not.empty()) details.push_back({"why_not_recorded", why_not});
  if (copies_.size() == 1) return details;
  double waited = 0;
  for (const Copy& copy : copies_) {
    const absl::StatusOr<dist::PipelineTiming> of_copy =
        copy.pipeline->Timing();
    if (of_copy.ok()) waited += of_copy->awaited;
  }
  const auto count = static_cast<int64_t>(copies_.size());
  details.push_back({"replicas", count});
  details.push_back({"waited_share", waited / static_cast<double>(count)});
  return details;
}

}  // namespace baton::examples
