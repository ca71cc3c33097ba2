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

// Every worker's registry needs this and, for each module, RegisterModule<M>.
void RegisterPipeline(rpc::Registry& registry);

struct PipelineOptions {
  int64_t split_size = 0;  // rows of a micro-batch; 0: the whole batch
  // Rows of each micro-batch, instead of split_size. They must add up to a
  // batch that is trained, but not to one that is evaluated.
  std::vector<int64_t> micro_batches = {};
  // A schedule's workers are the devices of all workers, numbered from 0 in the
  // order in which the stages first name them. With "auto", the first two steps
  // use default costs, and later ones the times that the second step's
  // instructions took.
  ScheduleChoice schedule = {};
  PipelineLoss loss = Loss::kCrossEntropy;
  // Values that do not pass along the chain of stages (stage_routes.h): skips,
  // and inputs of the batch for stages other than the first. Schedules need not
  // know of them, because a skip arrives no later than what passes along the
  // chain. Simulations and plans (partition.h) count neither their transfers
  // nor their memory, which the receiving stage holds from its forward to its
  // backward.
  std::vector<StageRoute> routes = {};
  // The number of micro-batches that a GPU works on at once, on separate
  // streams, because small ones leave much of it idle. The schedule then orders
  // groups of this size. It applies to GPUs that replay their whole part of a
  // step, and so does `overlap`; others execute the micro-batches of a group
  // one after the other.
  int at_once = 1;
  // Whether forwards run concurrently with backwards of other micro-batches, on
  // separate streams. It pays if there are more micro-batches than stages.
  bool overlap = false;
  // Whether copies between GPUs of one worker run on separate streams,
  // concurrently with computing. Turn it off only to measure the benefit: then
  // a copy begins after the earlier work of the computing streams of both GPUs,
  // and their later work waits for the copy. Results are the same.
  bool copy_streams = true;
  bool recompute = false;  // recompute activations, see StageSpec
  bool graph = true;       // replay recordings on GPUs, see StageSpec
  // Batch norms normalize micro-batches by their own statistics in either case.
  // If this is set, their running statistics, if f32, change once per training
  // step, by the statistics of all rows that reached the layer: as if one
  // process had normalized these rows as one batch.
  bool deferred_batch_norm = false;
  // How training steps pass values between neighbors on one machine. The first
  // step of a plan, which is for inputs and targets of certain shapes, sends
  // messages and learns the values' shapes; later steps may use windows. Only
  // the first few such plans get windows, which hold memory until the pipeline
  // is dropped or its plans change. A later step fails if its values have other
  // shapes. If windows are required but impossible, the next step fails and
  // says why.
  Windows windows = Windows::kAuto;
  // For steps by optimizers with stages in f16, whose range is too small for
  // many gradients: the loss is multiplied by a scale, and gradients are
  // divided by it in f32. If a gradient overflows at any worker, no worker
  // steps, and the scale becomes smaller (optim::GradScaler). A step that
  // begins while another is under way uses the scale as it was before that one
  // ends. Running statistics change even in a skipped step.
  std::optional<optim::GradScalerOptions> loss_scale = std::nullopt;
  // Threads of each worker, as core/parallel.h counts them; 0: the worker's own
  // setting.
  int compute_threads = 0;
  std::chrono::milliseconds step_timeout{600'000};
  // Names the line of pipelines that replace each other in recoveries
  // (RecoverablePipeline); empty: none. A pipeline of the same line and a later
  // epoch takes the modules from this one, whatever its state.
  std::string line = {};
  uint64_t epoch = 0;
};

// Trains a chain of modules, each at its worker, with micro-batches in flight
// on all stages at once. A stage may take and return several values
// (nn::Module::ForwardAll), and values may skip stages
// (PipelineOptions::routes); integers have no gradient. The first dimension of
// batches and of the last stage's outputs is the micro-batch's rows. A value
// may also be a parameter that a later stage computes with: it is passed on,
// and its gradient comes back, once per micro-batch.
// The trainer tells every worker once what its stages do in steps of one kind.
// Then it sends it one message per step, with the inputs for the first stage
// and the targets for the last one; activations and gradients travel directly
// between stages. If no value has more than two gradients to add up, a step's
// gradients equal, bit for bit, those of one process that accumulates over the
// same micro-batches in order. More than two are added in a fixed order, from
// the last stage that uses the value to the first, which may differ from the
// order in one process; the results are then equal up to rounding.
//
//   ASSIGN_OR_RETURN(auto pipeline, dist::Pipeline::Make(
//       agent, {.split_size = 20}, {front, back}));
//   dist::Optimizer<optim::Sgd> sgd(agent, {.lr = 0.1}, {front, back});
//   ASSIGN_OR_RETURN(auto step, pipeline->Step(sgd, images, labels));
//
// Or, to do something between the backwards and the optimizer's step:
//
//   dist::Context ctx(agent);
//   ASSIGN_OR_RETURN(auto step, pipeline->Step(ctx, images, labels));
//   RETURN_IF_ERROR(sgd.Step(ctx));
//
// Modules that mix the rows of a batch (batch norm) see micro-batches;
// PipelineOptions::deferred_batch_norm says how this affects their statistics.
// The pipeline must not outlive the agent. Thread-compatible.
class Pipeline {
 public:
  // Returns InvalidArgument if there are no modules, for bad options or routes,
  // for modules that are not where the schedule needs them (PlaceStages), and
  // for a loss that is not at the last module's worker. Returns
  // FailedPrecondition if a module is part of another pipeline, which must be
  // dropped first, else the error of the worker that could not make its stages.
  // Each call has the agent's default timeout.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Make(
      rpc::Agent& agent, const PipelineOptions& options,
      const std::vector<StageModule>& modules);

  struct StepResult {
    double loss = 0;  // mean over the batch
    // The share of rows whose largest element of the first output is where the
    // target says: targets are i64 labels or, like the outputs, floating and of
    // rank 2. 0 for other ranks and targets.
    double accuracy = 0;
    // The share of the step in which the mean device computed nothing, from
    // when the workers received the step to when the last one was done. nullopt
    // if the step was not timed.
    std::optional<double> bubble = std::nullopt;
    // True if gradients overflowed, so that no parameter was stepped
    // (PipelineOptions::loss_scale).
    bool skipped = false;
  };
  // Returns whether a training step is timed if `before` steps of the same
  // batch size precede it. On CPUs every step is. On GPUs, where workers must
  // wait for the end of a timed step, only the first steps and a few later ones
  // are.
  static constexpr bool IsTimed(bool on_gpus, int64_t before) {
    return !on_gpus || before < kTimedFirst || before % 64 == 0;
  }
  // Runs forward and backward of one batch; the first dimension of inputs and
  // targets is its rows. Gradients are left in `ctx`, for an optimizer. After
  // an error, which names the stage and the worker, do not use the gradients;
  // all workers that are not lost have given up the step, and the next one may
  // follow. Modules run in the mode that they are in: one that was set to eval
  // stays frozen. Returns InvalidArgument, without sending anything, if the
  // rows of inputs, targets and the options' micro-batches differ; the other
  // methods that take a batch do so, too.
  absl::StatusOr<StepResult> Step(const Context& ctx, const BatchInputs& inputs,
                                  const Tensor& targets) {
    return StepAsync(ctx, inputs, targets).Await(kNoLimit);
  }
  // As above, and each worker steps its parameters by the optimizer. A step
  // that fails changes nothing at any worker, with the exceptions that
  // StageGroup names, and sets the optimizer's schedules back. Parameters that
  // the optimizer has at workers outside of the pipeline are not stepped.
  template <typename O>
  absl::StatusOr<StepResult> Step(Optimizer<O>& optimizer,
                                  const BatchInputs& inputs,
                                  const Tensor& targets) {
    return StepAsync(optimizer, inputs, targets).Await(kNoLimit);
  }

  // Begins a step. At most kMostUnderWay steps and evaluations may be under
  // way, so that a worker has the next one when it finishes one: returns
  // FailedPrecondition for more. If a step fails, those that were begun after
  // it fail, too. Results are those of steps that run one after the other. Do
  // not change inputs and targets until the step is done; its time limit counts
  // from this call. Waits until the optimizer has been made.
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
    return Train({.steps = true,
                  .hosts = *std::move(hosts),
                  .next_request = [&optimizer] { return optimizer.NextStep(); },
                  .on_failure = optimizer.BackByOne()},
                 inputs, targets);
  }

  // For callers that repeat steps: runs a step with the values that Hosts and
  // NextStep returned. The states after it are kept under `number`, unless that
  // is 0.
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
  // Sets the keepers of such steps' states, one for each worker in the workers'
  // order. Call it before those steps.
  void KeepStatesBy(std::vector<RRef<StateKeeper>> keepers);

  struct EvalResult {
    Values outputs;  // of the last stage, each with all rows
    double loss = 0;
    double accuracy = 0;
  };
  // Runs only the forwards, in eval mode, and then restores the mode of each
  // module. Without targets, loss and accuracy are not computed.
  absl::StatusOr<EvalResult> Evaluate(const BatchInputs& inputs,
                                      const Tensor& targets = Tensor());

  // Makes pipelines replicas: copies of one model at different workers, with
  // the same options. Call it before their first steps. All take over the
  // parameters and buffers of the first one. From then on the trainer begins
  // each training step at all of them, one after the other without waiting,
  // each with the same number of rows of a batch. Gradients are the mean over
  // all replicas, those of the whole batch: each stage reduces its own with the
  // same stage of the others as soon as its last backward is done, while
  // earlier stages still compute; if workers step parameters, they do so after
  // that. Losses and statistics belong to each replica. An error at one replica
  // fails the step at all, and they take no more steps. Every worker needs
  // rpc::AttachCollectives; GPUs then replay only single passes. Returns
  // InvalidArgument if the pipelines are not alike, and FailedPrecondition if
  // one has taken a step.
  static absl::Status MakeReplicas(rpc::Agent& agent,
                                   const std::vector<Pipeline*>& pipelines);

  // Returns how many training steps of a batch size come before the following
  // ones are alike: by then algorithms are chosen, windows and recordings are
  // made, "auto" has its final order, and GPUs are no longer timed in each.
  int warm_up_steps() const;

  // Returns the schedule of the last training step; null before the first.
  const Schedule* schedule() const {
    return last_ ? &last_->schedule : nullptr;
  }
  // Returns the measured and the predicted course of steps by that schedule, in
  // seconds: the medians of the timed steps' bubbles and waits for replicas,
  // and a simulation with the mean costs of their instructions and of the
  // copies between GPUs. Returns FailedPrecondition until a step counts: the
  // first one of a batch size, which reserves memory and chooses kernels, does
  // not.
  absl::StatusOr<PipelineTiming> Timing();

  // Returns the links from each stage to those that it sends values to, in
  // order. Paths are known after a step has used them. Waits for the workers
  // and returns the error of one of them.
  absl::StatusOr<std::vector<PipelineLink>> Links() const;
  // Returns why GPUs do not replay the last training step as one recorded
  // program each, for display. Empty if they do, or no stage is on a GPU.
  std::string WhyNotRecorded() const;
  // Returns how many kernels all GPUs together replay for it; 0 if they do not.
  int64_t KernelsReplayed() const;

  // Returns the loss scale of the next step; 0 unless the options ask for one.
  double loss_scale();

  int num_stages() const { return static_cast<int>(stages_.size()); }
  const PipelineOptions& options() const { return options_; }
  // Sets the rows of all micro-batches from now on. Costs are measured anew.
  void set_split_size(int64_t rows);

 private:
  static constexpr int kTimedFirst = 8;
  // The schedule for one batch size, and what training steps of that size have
  // measured.
  struct Ordered {
    Workload work;  // of groups of micro-batches
    std::vector<RowRange> rows;
    Schedule schedule;
    CostMeter meter;              // by micro-batch
    std::vector<double> bubbles;  // of timed steps with the present schedule
    std::vector<double> awaited;  // likewise, AwaitedOf
    int steps = 0;
    bool by_costs = false;
  };
  // Where gradients go: to a scope, or to optimizers that step the parameters.
  struct Sink {
    std::shared_ptr<rpc::CallScope> scope = nullptr;
    bool steps = false;
    std::vector<RRef<OptimizerHost>> hosts = {};
    // Called once the step is certain to be sent.
    std::function<StepRequest()> next_request = nullptr;
    // Called once, by any thread, if a step that was sent fails.
    std::function<void()> on_failure = nullptr;
    int64_t number = 0;  // the states are kept under it; 0: they are not
  };
  // A plan that was sent to the workers.
  struct Told {
    StepPlan plan;  // without its program and optimizer, which differ per
                    // worker
    std::vector<rpc::RRefId> hosts;
    // The forms of inputs and targets, if windows depend on them.
    std::vector<ValueSpec> specs;
    bool known = false;  // all workers have it
    bool asked = false;  // a step has asked to make windows
    std::vector<LinkEnds> windows = {};
    std::vector<LinkEnds> gpu_windows = {};  // of recorded programs
    std::string why_no_window = {};  // for one of the links; for display
    // The state of recording the programs of all workers, which begins once the
    // windows are made.
    enum class Recording { kToBeAsked, kAsked, kMade, kRefused };
    Recording recording = Recording::kToBeAsked;
    std::string why_not_recorded = {};  // if a worker could not; for display
    int64_t kernels = 0;                // of all recordings
  };
  struct UnderWay {
    uint64_t step;
    uint64_t plan;
    // Whether its times and costs are typical of later steps: it trains, and is
    // not the step before a recording.
    bool counts;
    bool scaled;                             // whether its loss was scaled
    std::vector<RRef<OptimizerHost>> hosts;  // kept alive until the step is
                                             // done
    Future<std::vector<GroupReport>> reports;
  };
  // Where the stages are. Workers and their devices are numbered from 0 in the
  // order in which the stages first name them.
  struct Places {
    std::vector<int> worker_of_stage;
    std::vector<int> device_of_stage;
    bool on_gpus = false;  // some module is on one
    friend bool operator==(const Places&, const Places&) = default;
  };
  Pipeline(const PipelineOptions& options, std::vector<RRef<Stage>> stages,
           std::vector<RRef<StageGroup>> groups, Places places);

  static absl::StatusOr<Places> PlacesOf(
      const std::vector<RRef<StageGroup>>& groups,
      const std::vector<int>& worker_of_stage);
  // Returns the last training step's plan, or null.
  const Told* LastTrained() const;
  Workload WorkFor(const StepPlan& plan) const;
  absl::StatusOr<Ordered*> OrderedFor(const StepPlan& plan);
  // Returns what each worker does, by a schedule of its devices: one thread
  // enqueues the work of all of them, in the order of the predicted begin
  // times.
  absl::StatusOr<std::vector<Program>> ProgramsOf(const Schedule& schedule,
                                                  const Workload& work,
                                                  const StepPlan& plan) const;
  void Learn(const std::vector<GroupReport>& reports, Ordered& ordered);
  // Learns from steps that have ended.
  void Collect();
  // Takes over from a step's reports the results of its request to make windows
  // or recordings.
  static void LearnWindows(const std::vector<GroupReport>& reports, Told& told);
  static void LearnRecordings(const std::vector<GroupReport>& reports,
                              Told& told);
  absl::StatusOr<StepPlan> PlanFor(const BatchInputs& inputs,
                                   const Tensor& targets, bool training) const;
  absl::Status PutInputs(const BatchInputs& inputs,
                         std::vector<StepOrder>& orders) const;
  Told& ToldFor(const StepPlan& plan, const Sink& sink,
                const std::vector<ValueSpec>& specs);
  // Return true if this step is to make windows, or recordings, for later
  // steps.
  bool AsksForWindows(const Told& told) const;
  bool AsksForRecordings(const Told& told) const;
  // Returns what GPUs replay in a step of the plan.
  Replay ReplayFor(const Told& told) const;
  // Returns each worker's order; it contains the plan unless all workers have
  // it.
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
  const Places places_;
  std::vector<RRef<StateKeeper>> keepers_;  // of each worker, or none
  uint64_t last_step_ = 0;
  uint64_t last_plan_ = 0;
  uint64_t last_trained_ = 0;           // the plan of the last training step
  std::map<int64_t, Ordered> ordered_;  // by the rows of a batch
  std::list<Told> told_;
  std::vector<UnderWay> under_way_;
  const Ordered* last_ = nullptr;
  std::optional<optim::LossScale> loss_scale_;
};

}  // namespace baton::dist
