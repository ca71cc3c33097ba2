// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "models/distributed/batch_inputs.h"
#include "models/distributed/link_window.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline_link.h"
#include "models/distributed/pipeline_loss.h"
#include "models/distributed/schedules.h"
#include "models/distributed/simulation.h"
#include "models/distributed/stage_group.h"
#include "models/distributed/stage_module.h"
#include "optim/distributed/optimizer.h"
#include "optim/grad_scaler.h"
#include "rpc/agent.h"

namespace baton::dist {

// Every worker's registry needs it, beside RegisterModule<M> for the modules.
void RegisterPipeline(rpc::Registry& registry);

struct PipelineOptions {
  int64_t split_size = 0;  // rows of a micro-batch; 0: the whole batch
  // Rows of each micro-batch, in place of split_size; they add up to the batch,
  // but need not where it is only evaluated.
  std::vector<int64_t> micro_batches = {};
  // Of "auto" the first two steps go by usual costs, and those that follow by
  // what the second one's instructions took.
  ScheduleChoice schedule = {};
  PipelineLoss loss = Loss::kCrossEntropy;
  // Values that do not pass along the chain of stages (stage_routes.h): skips,
  // and inputs of the batch for other stages than the first. Schedules need not
  // know of them, as a skip comes no later than what passes along the chain.
  // Simulations and plans (partition.h) count neither their transfers nor their
  // memory, which is held from the one stage's forward to its backward.
  std::vector<StageRoute> routes = {};
  // As in DevicePipelineOptions, for GPUs whose part of a step is replayed as a
  // whole; others take the groups one micro-batch after the other.
  int at_once = 1;
  bool overlap = false;
  bool checkpoint = false;  // recompute activations, see StageSpec
  bool graph = true;        // replay recordings on GPUs, see StageSpec
  // Batch norms normalise micro-batches by their own statistics as ever, but
  // their running ones, if these are f32, move once a training step, by the
  // statistics of all rows that came to the layer: as far as one process would
  // have moved them that normalises them as one batch.
  bool deferred_batch_norm = false;
  // How training steps pass values between neighbours of one machine. The first
  // step of a plan, which is of inputs and targets of certain shapes, goes by
  // mail and shows what passes; the windows are for those that follow, of the
  // first few such shapes, and hold memory until the pipeline is dropped or its
  // plans change. A step fails whose values are then of other shapes. Where
  // windows are required and cannot be, the next step fails and says why.
  Windows windows = Windows::kAuto;
  // Of steps by optimizers, for stages of f16, whose range is too small for
  // many gradients: backwards begin with a scale, gradients are divided by it
  // in f32, and where one has overflowed, at whatever worker, none steps, and
  // the scale becomes smaller (optim::GradScaler). A step that is begun while
  // another is under way goes by the scale before that. Running statistics move
  // all the same. GPUs then replay passes alone.
  std::optional<optim::GradScalerOptions> loss_scale = std::nullopt;
  // Of each worker, as core/parallel.h counts them; 0: the worker's own
  // setting.
  int compute_threads = 0;
  std::chrono::milliseconds step_timeout{600'000};
  // A pipeline of the same line and a later epoch takes the modules from this
  // one, whatever has become of it (RecoverablePipeline). Empty: of no line.
  std::string line = {};
  uint64_t epoch = 0;
};

// Trains a chain of modules, each at its worker, in micro-batches that are in
// flight on all stages at once. A stage may take and give several values
// (nn::Module::ForwardAll), and by PipelineOptions::routes a value may skip
// stages; integers have no gradient. Batches and the last stage's outputs have
// the micro-batch's rows first. A parameter may be a value, too, so that a
// stage behind computes with it: it passes on and its gradient comes back once
// a micro-batch.
// The trainer tells every worker once what its stages do in steps of one kind,
// and then sends it one message a step, with the inputs to the first stage's
// and the targets to the last stage's; activations and gradients pass from
// stage to stage. A step's gradients equal, bit for bit, those of one process
// that accumulates over the same micro-batches in order, where no value has
// more than two gradients to be added up. More are added in one order, that of
// the stages that use the value from the last on, which need not be the order
// of one process: they are then equal up to rounding.
//
//   ASSIGN_OR_RETURN(auto pipeline, dist::Pipeline::Make(
//       agent, {.split_size = 20}, {front, back}));
//   dist::Optimizer<optim::Sgd> sgd(agent, {.lr = 0.1}, {front, back});
//   ASSIGN_OR_RETURN(auto step, pipeline->Step(sgd, images, labels));
//
// or, where something is to be done between the backwards and the optimizer:
//
//   dist::Context ctx(agent);
//   ASSIGN_OR_RETURN(auto step, pipeline->Step(ctx, images, labels));
//   RETURN_IF_ERROR(sgd.Step(ctx));
//
// Modules that read the other rows of a batch (batch norm) see micro-batches;
// PipelineOptions::deferred_batch_norm says what these do to statistics.
// Must not outlive the agent. Thread-compatible.
class Pipeline {
 public:
  // InvalidArgument for no modules, bad options and routes, modules that are
  // not where the schedule needs them (PlaceStages) and a loss that is not at
  // the last one; FailedPrecondition where a module is part of another
  // pipeline, which must be dropped first; else the error of the worker that
  // could not make its stages, each within the agent's default timeout. Workers
  // count from 0 as the modules name them first.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Make(
      rpc::Agent& agent, const PipelineOptions& options,
      const std::vector<StageModule>& modules);

  struct StepResult {
    double loss = 0;  // mean over the batch
    // Of rank-2 outputs, the first where there are several, whose targets are
    // i64 labels, or floating and rank 2 as they are: the part of the rows
    // whose largest elements agree. Else 0.
    double accuracy = 0;
    // Share of the step, from when the workers were told to when the last was
    // done, in which a mean worker's devices computed nothing. None where the
    // step was not timed.
    std::optional<double> bubble = std::nullopt;
    // Gradients overflowed, and nothing was stepped (PipelineOptions'
    // loss_scale).
    bool skipped = false;
  };
  // Whether a training step is timed that so many of its batch size came
  // before: on GPUs, where workers wait for the end of such a step, the first
  // ones and a few later ones; on CPUs each.
  static constexpr bool IsTimed(bool on_gpus, int64_t before) {
    return !on_gpus || before < 8 || before % 64 == 0;
  }
  // Forward and backward of one batch; inputs and targets have its rows first.
  // Gradients are left in `ctx`, for an optimizer; none to rely on after an
  // error, which names stage and worker. All stages have given up the step by
  // then or are lost, and the next may follow. Modules run in the mode that
  // they are in: what was set to eval stays frozen. InvalidArgument, with
  // nothing sent, where rows of inputs, targets and the options' micro-batches
  // differ; so for all that take a batch.
  absl::StatusOr<StepResult> Step(const Context& ctx, const BatchInputs& inputs,
                                  const Tensor& targets) {
    return StepAsync(ctx, inputs, targets).Await(kNoLimit);
  }
  // The same, and each worker steps its parameters by the optimizer. A step
  // that breaks changes nothing anywhere, with the exceptions that StageGroup
  // names. What the optimizer has at other workers is not stepped.
  template <typename O>
  absl::StatusOr<StepResult> Step(Optimizer<O>& optimizer,
                                  const BatchInputs& inputs,
                                  const Tensor& targets) {
    return StepAsync(optimizer, inputs, targets).Await(kNoLimit);
  }

  // Steps of which kMostUnderWay may be under way, evaluations counted, so that
  // workers have the next when they are done with one: FailedPrecondition for
  // more. One that breaks takes those begun after it along; the results are
  // those of steps one after the other. Inputs and targets stay as they are
  // until then, and the time limit counts from here. Waits itself until the
  // optimizer has been made.
  static constexpr size_t kMostUnderWay = 2;
  Future<StepResult> StepAsync(const Context& ctx, const BatchInputs& inputs,
                               const Tensor& targets) {
    return Train({.scope = ctx.call_scope()}, inputs, targets);
  }
  template <typename O>
  Future<StepResult> StepAsync(Optimizer<O>& optimizer,
                               const BatchInputs& inputs,
                               const Tensor& targets) {
    auto hosts = optimizer.Hosts().Await(kNoLimit);
    if (!hosts.ok()) return ReadyFuture<StepResult>(hosts.status());
    return Train(
        {.steps = true,
         .hosts = *std::move(hosts),
         .next_request = [&optimizer] { return optimizer.NextStep(); }},
        inputs, targets);
  }

  // For whoever does steps again: by what Hosts and NextStep gave; the states
  // after it are kept under a number.
  struct GivenStep {
    std::vector<RRef<OptimizerHost>> hosts{};
    StepRequest request{};
    int64_t number = 0;
  };
  Future<StepResult> StepAsync(const GivenStep& step, const BatchInputs& inputs,
                               const Tensor& targets) {
    return Train({.steps = true,
                  .hosts = step.hosts,
                  .next_request = [step] { return step.request; },
                  .number = step.number},
                 inputs, targets);
  }
  // Before such steps: of each worker, in their order, what keeps its states.
  void KeepStatesBy(std::vector<RRef<StateKeeper>> keepers);

  struct EvalResult {
    Values outputs;  // of the last stage, each of all rows
    double loss = 0;
    double accuracy = 0;
  };
  // The forwards alone, in eval mode, after which each module is in the mode
  // that it had before. Without targets no loss and accuracy.
  absl::StatusOr<EvalResult> Evaluate(const BatchInputs& inputs,
                                      const Tensor& targets = Tensor());

  // Before their first steps: makes pipelines of copies of one model, at other
  // workers and by the same options, replicas. Their parameters and buffers are
  // the first one's from then on; the trainer begins each training step at all
  // of them, one after the other without waiting, with as many rows of a batch
  // at each. Gradients are then the mean over all, those of the whole batch: a
  // stage reduces its own, with the others' same stage, as soon as its last
  // backward is done, while stages before it still compute, and where workers
  // step parameters they do so behind it. Losses and statistics are each one's
  // own. An error at one breaks the step at all, which then take no more.
  // Every worker needs rpc::AttachCollectives; GPUs launch such steps, and
  // replay passes alone. InvalidArgument for pipelines that are not alike,
  // FailedPrecondition where one has taken a step.
  static absl::Status MakeReplicas(rpc::Agent& agent,
                                   const std::vector<Pipeline*>& pipelines);

  // Training steps of a batch size after which those that follow are alike:
  // algorithms are chosen, windows and recordings made, and "auto" has its
  // order.
  int warm_up_steps() const;

  // The order of the last training step; null before one.
  const Schedule* schedule() const {
    return last_ ? &last_->schedule : nullptr;
  }
  // What that order comes to, in seconds, by the steps that were timed: the
  // mean of their bubbles, and what is predicted by the mean costs of their
  // instructions and of the copies between GPUs. FailedPrecondition before
  // there is one that counts: the first one of a batch size, which reserves
  // memory and chooses kernels, does not.
  absl::StatusOr<PipelineTiming> Timing();

  // From each stage to those that it gives something, in their order. The paths
  // are known once a step has passed something on. Waits for the workers: an
  // error is that of one of them.
  absl::StatusOr<std::vector<PipelineLink>> Links() const;

  // Of the next step, where the options ask for one; 0 otherwise.
  double loss_scale();

  int num_stages() const { return static_cast<int>(stages_.size()); }
  const PipelineOptions& options() const { return options_; }
  // Of all micro-batches from now on. Costs are learnt anew.
  void set_split_size(int64_t rows);

 private:
  // What training steps of one size go by, and have learnt.
  struct Ordered {
    Workload work;  // of groups of micro-batches
    std::vector<RowRange> rows;
    Schedule schedule;
    CostMeter meter;     // of micro-batches
    double bubbles = 0;  // of so many steps, by the present order
    int timed = 0;
    int steps = 0;
    bool by_costs = false;
  };
  // What becomes of gradients: they stay in a scope, or parameters are stepped.
  struct Sink {
    std::shared_ptr<rpc::CallScope> scope = nullptr;
    bool steps = false;
    std::vector<RRef<OptimizerHost>> hosts = {};
    // Called when the step is sure to be sent.
    std::function<StepRequest()> next_request = nullptr;
    int64_t number = 0;  // that the states are kept under
  };
  // What workers were sent a plan for.
  struct Told {
    StepPlan plan;  // without its program and optimizer, which differ
    std::vector<rpc::RRefId> hosts;
    // Of inputs and targets, where windows hang on them.
    std::vector<ValueSpec> specs;
    bool known = false;  // to all
    bool asked = false;  // for windows
    std::vector<LinkEnds> windows = {};
    std::vector<LinkEnds> gpu_windows = {};  // of recorded programs
    std::string why_no_window = {};          // of a link, for people
    // What comes of recording the programs of all workers, once the windows are
    // there.
    enum class Recording { kToBeAsked, kAsked, kMade, kRefused };
    Recording recording = Recording::kToBeAsked;
  };
  struct UnderWay {
    uint64_t step;
    uint64_t plan;
    // Its times and costs are those of steps to come: it trains, and is not one
    // of those that come before a recording.
    bool counts;
    bool scaled;                             // its loss was
    std::vector<RRef<OptimizerHost>> hosts;  // stay until then
    Future<std::vector<GroupReport>> reports;
  };
  Pipeline(const PipelineOptions& options, std::vector<RRef<Stage>> stages,
           std::vector<RRef<StageGroup>> groups,
           std::vector<int> worker_of_stage, bool on_gpus);

  Workload WorkFor(const StepPlan& plan) const;
  absl::StatusOr<Ordered*> OrderedFor(const StepPlan& plan);
  void Learn(const std::vector<GroupReport>& reports, Ordered& ordered);
  // Whether the step that has ended has overflowed.
  void AdaptScale(bool overflowed);
  // Learns from the steps that are over.
  void Collect();
  // What the reports of a step that asked for windows, or for recordings, say
  // of them.
  static void LearnWindows(const std::vector<GroupReport>& reports, Told& told);
  static void LearnRecordings(const std::vector<GroupReport>& reports,
                              Told& told);
  absl::StatusOr<StepPlan> PlanFor(const BatchInputs& inputs,
                                   const Tensor& targets, bool training) const;
  absl::Status PutInputs(const BatchInputs& inputs,
                         std::vector<StepOrder>& orders) const;
  Told& ToldFor(const StepPlan& plan, const Sink& sink,
                const std::vector<ValueSpec>& specs);
  // Whether this step is to make windows for those that follow, or recordings.
  bool AsksForWindows(const Told& told) const;
  bool AsksForRecordings(const Told& told) const;
  // What GPUs replay in a step of the plan.
  Replay ReplayFor(const Told& told) const;
  // With the plan, unless all workers know it.
  absl::StatusOr<std::vector<StepOrder>> OrdersFor(
      const StepPlan& plan, const Sink& sink,
      const std::vector<ValueSpec>& specs);
  Future<StepResult> Train(const Sink& sink, const BatchInputs& inputs,
                           const Tensor& targets);
  Future<std::vector<GroupReport>> Begin(const BatchInputs& inputs,
                                         const Tensor& targets, bool training,
                                         const Sink& sink);
  uint64_t OldestPlan() const;

  PipelineOptions options_;
  const std::vector<RRef<Stage>> stages_;
  const std::vector<RRef<StageGroup>> groups_;  // of each worker
  const std::vector<int> worker_of_stage_;
  const bool on_gpus_;                      // some worker has declared one
  std::vector<RRef<StateKeeper>> keepers_;  // of each worker, or none
  uint64_t last_step_ = 0;
  uint64_t last_plan_ = 0;
  std::map<int64_t, Ordered> ordered_;  // by the rows of a batch
  std::list<Told> told_;
  std::vector<UnderWay> under_way_;
  const Ordered* last_ = nullptr;
  double loss_scale_ = 0;   // 0: there is none
  int64_t good_steps_ = 0;  // since it changed
};

}  // namespace baton::dist
