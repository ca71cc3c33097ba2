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

// A module of a pipeline and how to make it again at any worker.
class RecoveredModule {
 public:
  // make(worker) returns a Future<Module<M>> of a module of the same form; its
  // parameters do not matter.
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
  // Makes the module at `worker`. This process's RRefs then refer to the new
  // one.
  Future<void> MakeAt(const rpc::Target& worker) const {
    return make_at_(worker);
  }

 private:
  StageModule stage_;
  SavedModule saved_;
  std::function<Future<void>(const rpc::Target&)> make_at_;
};

// The optimizer, of any kind, of all parameters of a pipeline.
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
  std::vector<std::string> lost{};        // workers; empty if only links broke
  std::vector<std::string> successors{};  // of each lost worker
  int64_t step = 0;    // the step after which all resumed; counts from 1
  int64_t redone = 0;  // the number of steps that were repeated
  int tries = 0;
  // Seconds over all tries. detect: from the first sign of a loss, or the
  // step's error, until the lost workers were known. decide: until other
  // workers had their places and all states were located. make: for modules and
  // stages. load: for states. redo: for repeating steps.
  double detect = 0, decide = 0, make = 0, load = 0, redo = 0;

  std::string ToString() const;  // one line
};

struct RecoveryOptions {
  // How long a worker that does not answer may take to come back or be declared
  // lost, and then how long the place of a lost one may stay empty. After that
  // no step is possible.
  std::chrono::milliseconds successor_timeout{30'000};
  // No further try begins after this time.
  std::chrono::milliseconds timeout{180'000};
  // The folder in which this trainer notes each state that is kept
  // (trainer_journal.h), so that a restarted trainer continues the training.
  // Each step lists its files. Empty: the training ends with its trainer.
  std::string journal{};
  // A state is kept as soon as the one before it is safe, so a recovery repeats
  // the steps of two copies at most. If those are more than this number, a step
  // waits for the copies.
  int64_t most_redone = 32;
  // How long workers with a journal's states keep them once the trainer has
  // gone.
  std::chrono::milliseconds grace{120'000};
  // Called for each recovery after its steps have been repeated.
  std::function<void(const Recovery&)> on_recovery = nullptr;
};

// A pipeline that survives the loss of workers. Every worker copies the state
// of its modules and of the optimizer, concurrently with later steps, to the
// memory of the next worker, again and again: after the first step that begins
// when all have their last copy. When a worker is lost, all return to the last
// step whose states are complete. A restarted worker of the same name, or a
// spare (rpc/spares.h), makes the lost modules anew and takes their state from
// the copy; then the later steps are repeated. So a step is committed at all
// workers or at none, and losses are those of an undisturbed training, bit for
// bit on CPUs.
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
// With RecoveryOptions::journal the trainer may be lost, too: Make, called by a
// restarted trainer with modules of the same kind and number, continues from
// the newest state of the journal that the workers still have, after a step or
// of a Keep. resumed() then returns its step and what the trainer had noted of
// it (Note). Once another trainer has taken a training over, all workers that
// it commands and the journal refuse every request of the earlier one with
// PermissionDenied, which names the other trainer.
//
// In this process, RRefs and Modules of what was made anew continue to work
// (RRef::MoveTo), and so does the optimizer; everything else at a lost worker
// is lost. docs/design/stage_recovery.md says which failures are survived. Must
// not outlive the agent and the optimizer. Confined to one thread.
class RecoverablePipeline {
 public:
  // Once it has returned, any worker may be lost. Returns the errors of
  // Pipeline::Make and of the journal, and InvalidArgument for a loss that is a
  // module and for a loss scale, which cannot be recovered.
  static absl::StatusOr<std::unique_ptr<RecoverablePipeline>> Make(
      rpc::Agent& agent, const PipelineOptions& options,
      const RecoveryOptions& recovery,
      const std::vector<RecoveredModule>& modules,
      const RecoveredOptimizer& optimizer);

  // As Pipeline::Step. Give each step tensors of its own, or do not change
  // those of the last RecoveryOptions::most_redone steps and two more. After an
  // error that is not the loss of workers, the state is as it was before the
  // step. DataLoss: a worker was lost together with the one that kept its
  // state. Then the training has returned to the newest checkpoint, which
  // resumed() describes; without one, no further step is possible.
  absl::StatusOr<Pipeline::StepResult> Step(const BatchInputs& inputs,
                                            const Tensor& targets);
  // The two halves of Step. As many steps as Pipeline::kMostUnderWay may be
  // under way, with a journal one: BeginStep returns FailedPrecondition for
  // more. AwaitStep returns the result of the first one that is under way.
  // After any other error no step is under way. Checkpointer::Save must not be
  // called while one is.
  absl::Status BeginStep(const BatchInputs& inputs, const Tensor& targets);
  absl::StatusOr<Pipeline::StepResult> AwaitStep();
  size_t most_under_way() const {
    return journal_.has_value() ? 1 : Pipeline::kMostUnderWay;
  }
  // These need that no step is under way.
  absl::StatusOr<Pipeline::EvalResult> Evaluate(
      const BatchInputs& inputs, const Tensor& targets = Tensor());
  // Sets what the journal notes of the present state for a restarted trainer
  // with the next step or Keep, if that state is kept. After a return to a
  // checkpoint this is what Checkpointer::Save was given.
  void Note(NamedTensors state) { noted_ = std::move(state); }
  // Makes the workers keep the present state as that after the last step. Call
  // it when something other than a step has changed the state, such as
  // Checkpointer::Resume or Module::LoadStateDict: a recovery would undo that.
  // With a journal, call Note before. A trainer that is restarted before Keep
  // has returned, or the step after a Keep that failed, may find no state.
  // After an error that is not DataLoss (as of Step), and unless status() is
  // one, the workers have the state after the last step again: call Note,
  // change it once more and repeat the call.
  absl::Status Keep();
  // Ends the training: no step follows, and a restarted trainer begins anew.
  absl::Status Finish() const;

  // Sets the checkpoints that the training returns to if states are lost. They
  // must be of the same modules and optimizer, remain usable after recoveries,
  // and must live as long as steps are taken. null: none. Once another trainer
  // has taken the training over, their Save returns PermissionDenied.
  void set_checkpoints(Checkpointer* checkpoints) {
    checkpoints_ = checkpoints;
    GuardCheckpoints();
  }
  // How often Step or Evaluate has returned to a checkpoint.
  int64_t returns() const { return returns_; }
  // The error after which no step is possible; OK: steps are possible.
  const absl::Status& status() const { return status_; }
  // The checkpoint that was last returned to; before that, what Make has taken
  // up.
  const std::optional<Checkpointer::Resumed>& resumed() const {
    return resumed_;
  }
  // How many steps were committed; a return to a checkpoint leaves it as it is.
  int64_t steps() const { return steps_; }
  int64_t recoveries() const { return recoveries_; }
  // The present pipeline; a recovery replaces it.
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

  // A number that the state after this step is kept under, or 0.
  int64_t NumberToKeep(int64_t number);
  Future<Pipeline::StepResult> Run(const Batch& batch);
  // Drops the batches up to the last state if it is safe, for which it waits
  // only where there are too many batches. Recovers the pipeline if a copy
  // failed.
  absl::Status AwaitSafe();
  Future<void> Safe(int64_t number) const;
  absl::Status NoneUnderWay() const;
  void GiveUpSteps();
  // The number of the newest state all steps up to which have a result.
  int64_t LastDone() const;
  // Repeats until all batches are committed and `rest`, if any, returns OK.
  absl::Status Recover(const absl::Status& cause, const Rest& rest);
  // One attempt: returns the final status, or nullopt to try again because of
  // `why`.
  std::optional<absl::Status> Try(const absl::Status& cause, const Rest& rest,
                                  absl::Status& why, Recovery& record);
  // Waits until all places have a worker.
  absl::Status Decide(Recovery& record);
  // For a trainer that continues another one's training, or may have a
  // successor.
  absl::Status OpenJournal();
  absl::Status TakeUp();
  // Claims what all workers have, and reads what is noted by then.
  absl::Status ClaimStates(std::chrono::steady_clock::time_point deadline);
  // Some of the workers that keep the newest entry's state may have been given
  // up and be there all the same: claims what they have, too.
  absl::Status AwaitKeepers();
  // The number of this trainer, by which the journal knows it.
  uint64_t trainer() const { return options_.epoch / kEpochsOfTrainer; }
  // Of the present state, which has, or is to have, this number.
  absl::Status WriteJournal(int64_t number) const;
  // Before the step after this one. PermissionDenied if another trainer has
  // taken the training up.
  absl::Status NoteStep(int64_t last) const;
  StateClaim Claim(bool takes_up) const;
  void GuardCheckpoints();
  // Until when workers that do not answer are waited for, from now on.
  std::chrono::steady_clock::time_point MembersDeadline() const {
    return std::chrono::steady_clock::now() + recovery_.successor_timeout;
  }
  // Returns the step after which to continue, and where its states are.
  absl::StatusOr<std::optional<PipelineMembers::Kept>> FindStates(
      const Recovery& record);
  absl::Status MakeAll(Recovery& record);
  absl::Status MakeModules();
  absl::Status MakePipeline();
  absl::Status MakeKeepers();
  // If `from` is empty, the state stays as it is.
  absl::Status Load(int64_t step, const std::vector<RRef<StateStore>>& from);
  absl::Status Redo(int64_t after, int64_t last, Recovery& record);
  absl::Status GoBackToCheckpoint();
  absl::Status KeepAnew();

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
  std::vector<RRef<StateKeeper>> keepers_;  // one for each place
  // Of the steps since the last state that is safe.
  std::deque<Batch> batches_;
  std::deque<Future<Pipeline::StepResult>> under_way_;  // of the last ones
  // The newest state that was kept or is to be kept, and whether it is safe at
  // all workers; unset while its step is under way.
  int64_t kept_ = 0;
  std::optional<Future<void>> safe_;
  // The last one before it, or the one that all began with, if that is later.
  int64_t last_safe_ = 0;
  std::optional<Checkpointer::Resumed> resumed_;
  Checkpointer* checkpoints_ = nullptr;
  absl::Status status_;  // an error after which no step is possible
  // The number of the state after the next step, or after the first one under
  // way. The state after each step has one, whether it is kept or not, and so
  // do those that Keep keeps.
  int64_t next_ = 1;
  int64_t steps_ = 0;
  bool goes_back_ = false;  // this recovery has begun to load a checkpoint
  int64_t recoveries_ = 0;
  int64_t returns_ = 0;
};

}  // namespace baton::dist
