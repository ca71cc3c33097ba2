// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/distributed/checkpoint.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/pipeline_members.h"
#include "models/distributed/trainer_journal.h"
#include "optim/distributed/optimizer.h"
#include "rpc/agent.h"

namespace baton::dist {

// A module of a pipeline and how it is made, at any worker.
class RecoveredModule {
 public:
  // make(worker) gives a Future<Module<M>> of one like it, with any parameters.
  template <typename M, typename Make>
  RecoveredModule(const Module<M>& module, Make make)
      : stage_(module),
        saved_(module),
        make_at_([module, make](const rpc::Target& worker) {
          return make(worker).Then([module](const Module<M>& made) {
            return module.ref().MoveTo(made.ref());
          });
        }) {}

  const StageModule& stage() const { return stage_; }
  const SavedModule& saved() const { return saved_; }
  // Its RRefs here are those of the new one then.
  Future<void> MakeAt(const rpc::Target& worker) const {
    return make_at_(worker);
  }

 private:
  StageModule stage_;
  SavedModule saved_;
  std::function<Future<void>(const rpc::Target&)> make_at_;
};

// The optimizer of all parameters of a pipeline, of any kind.
struct RecoveredOptimizer {
  template <typename O>
  // NOLINTNEXTLINE(google-explicit-constructor): as SavedOptimizer
  RecoveredOptimizer(Optimizer<O>& optimizer)
      : hosts([&optimizer] { return optimizer.Hosts(); }),
        next_step([&optimizer] { return optimizer.NextStep(); }),
        export_rates([&optimizer] { return optimizer.ExportRates(); }),
        import_rates([&optimizer](const optim::StateDict& rates) {
          return optimizer.ImportRates(rates);
        }),
        make_anew([&optimizer] { optimizer.MakeAnew(); }) {}

  std::function<Future<std::vector<RRef<OptimizerHost>>>()> hosts;
  std::function<StepRequest()> next_step;
  std::function<optim::StateDict()> export_rates;
  std::function<absl::Status(const optim::StateDict&)> import_rates;
  std::function<void()> make_anew;
};

// How a pipeline was recovered.
struct Recovery {
  std::vector<std::string> lost{};        // workers; none: links broke
  std::vector<std::string> successors{};  // of each
  int64_t step = 0;    // after which all began again, counted from 1
  int64_t redone = 0;  // steps since
  int tries = 0;
  // In seconds, of all tries. From the first sign of a loss, or the step's
  // error, until it was known who is lost; until others had the places, and it
  // was known whose state is where; modules and stages; states; steps.
  double detect = 0, decide = 0, make = 0, load = 0, redo = 0;

  std::string ToString() const;  // one line
};

struct RecoveryOptions {
  // How long a worker that does not answer may take to come back or be lost,
  // and then the place of one that is lost stay empty.
  std::chrono::milliseconds successor_timeout{30'000};
  // After which no other try begins.
  std::chrono::milliseconds timeout{180'000};
  // A folder in which this trainer notes each step (trainer_journal.h), so that
  // one that is started again goes on with the training; empty: the loss of the
  // trainer is the end of it.
  std::string journal{};
  // How long workers keep their states then, once the trainer has gone.
  std::chrono::milliseconds grace{120'000};
  // Hears of each, once the step is done again.
  std::function<void(const Recovery&)> on_recovery = nullptr;
};

// A pipeline of which workers may be lost. After each step every worker copies
// the state of its modules and of the optimizer, beside the next step, to the
// memory of the worker behind it. When one is lost, all go back to the last
// step whose states are all there; one of its name that was started again, or a
// spare (rpc/spares.h), makes its modules anew and takes its state from there;
// and the steps since are done again. So a step is committed at all workers or
// at none, and losses are those of an undisturbed training, bit for bit on
// CPUs.
//
//   const auto make = [&](const rpc::Target& worker) {
//     return dist::Module<Front>::Create(agent, worker, spec);
//   };
//   ASSIGN_OR_RETURN(auto front, make("bob").Await());
//   ...
//   ASSIGN_OR_RETURN(auto pipeline, dist::RecoverablePipeline::Make(
//       agent, {.split_size = 20}, {}, {{front, make}, {back, make_back}},
//       sgd));
//   ASSIGN_OR_RETURN(auto step, pipeline->Step(images, labels));
//
// With RecoveryOptions::journal the trainer may be lost, too, or started again:
// Make, with modules of the same kind and number, takes the training up where
// workers still have the states after a step that the journal has, and
// resumed() says which, and what the trainer had noted (Note). A trainer that
// another has taken the training from is refused by all workers from then on,
// whatever it asks, with PermissionDenied, which names the other.
//
// RRefs and Modules of what was made anew go on working in this process
// (RRef::MoveTo), and so does the optimizer; what else a lost worker had is
// lost with it. docs/design/stage_recovery.md says what is survived. Must not
// outlive the agent and the optimizer. Confined to one thread.
class RecoverablePipeline {
 public:
  // Errors as Pipeline::Make, and of the journal; InvalidArgument for a loss
  // that is a module of its own, and for a loss scale, which are not recovered.
  static absl::StatusOr<std::unique_ptr<RecoverablePipeline>> Make(
      rpc::Agent& agent, const PipelineOptions& options,
      const RecoveryOptions& recovery,
      const std::vector<RecoveredModule>& modules,
      const RecoveredOptimizer& optimizer);

  // As Pipeline::Step. Inputs and targets stay as they are until the next but
  // one has ended. An error that is not the loss of workers leaves all as it
  // was before the step. DataLoss: a worker was lost together with the one that
  // kept its state; either the training has gone back to the newest checkpoint,
  // which resumed() has, or, where there is none, no step can follow.
  absl::StatusOr<Pipeline::StepResult> Step(const BatchInputs& inputs,
                                            const Tensor& targets);
  absl::StatusOr<Pipeline::EvalResult> Evaluate(
      const BatchInputs& inputs, const Tensor& targets = Tensor());
  // Before a step: what a trainer that is started again is to know of the time
  // before it, beside the optimizer's rates. For the journal.
  void Note(NamedTensors state) { noted_ = std::move(state); }
  // No step follows: a trainer that is started again begins anew.
  absl::Status Finish() const;

  // Where states are lost the training goes back to the newest of these, of the
  // same modules and optimizer, which stay good after recoveries. They live as
  // long as steps are taken; null: none.
  void set_checkpoints(Checkpointer* checkpoints) {
    checkpoints_ = checkpoints;
  }
  // Of the last Step that ended in DataLoss; before, of what was taken up.
  const std::optional<Checkpointer::Resumed>& resumed() const {
    return resumed_;
  }
  int64_t steps() const { return next_ - 1; }  // committed
  int64_t recoveries() const { return recoveries_; }
  // The present one: anew after a recovery.
  Pipeline& pipeline() { return *pipeline_; }

 private:
  using Clock = PipelineMembers::Clock;
  struct Batch {
    int64_t number;
    BatchInputs inputs;
    Tensor targets;
    StepRequest request;
  };
  using Rest = std::function<absl::Status()>;

  RecoverablePipeline(rpc::Agent& agent, const PipelineOptions& options,
                      const RecoveryOptions& recovery,
                      const std::vector<RecoveredModule>& modules,
                      const RecoveredOptimizer& optimizer);

  absl::StatusOr<Pipeline::StepResult> Run(const Batch& batch);
  // Until the batches that are not committed are, and `rest`, if any, is OK.
  absl::Status Recover(const absl::Status& cause, const Rest& rest);
  // How it is over, or nothing to try again because of `why`.
  std::optional<absl::Status> Try(const absl::Status& cause, const Rest& rest,
                                  absl::Status& why, Recovery& record);
  // Until all places have a worker.
  absl::Status Decide(Recovery& record);
  // Of a trainer that goes on with another's training, or may be followed.
  absl::Status OpenJournal();
  absl::Status TakeUp();
  absl::Status WriteJournal() const;
  StateClaim Claim(bool takes_up) const;
  // After which step to go on, and where the states after it are.
  absl::StatusOr<std::optional<PipelineMembers::Kept>> FindStates(
      const Recovery& record);
  absl::Status MakeAll(Recovery& record);
  absl::Status MakeModules();
  absl::Status MakePipeline();
  absl::Status MakeKeepers();
  // Nobody: the state is as it is.
  absl::Status Load(int64_t step, const std::vector<RRef<StateStore>>& from);
  absl::Status Redo(int64_t after, int64_t last, Recovery& record);
  absl::Status GoBackToCheckpoint();

  rpc::Agent& agent_;
  PipelineOptions options_;
  const RecoveryOptions recovery_;
  const std::vector<RecoveredModule> modules_;
  const RecoveredOptimizer optimizer_;
  std::vector<size_t> place_of_module_;
  PipelineMembers members_;
  std::unique_ptr<Pipeline> pipeline_;
  std::optional<TrainerJournal> journal_;
  uint64_t training_ = 0;  // as the journal names it
  NamedTensors noted_;
  std::vector<RRef<OptimizerHost>> hosts_;
  std::vector<RRef<StateKeeper>> keepers_;  // of each place
  std::deque<Batch> batches_;               // of the last steps
  std::optional<Pipeline::StepResult> redone_;
  std::optional<Checkpointer::Resumed> resumed_;
  Checkpointer* checkpoints_ = nullptr;
  absl::Status status_;  // of what no step can follow
  int64_t next_ = 1;     // step
  int64_t recoveries_ = 0;
};

}  // namespace baton::dist
