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

// Describes how a pipeline was recovered.
struct Recovery {
  std::vector<std::string> lost{};        // workers; empty if only links broke
  std::vector<std::string> successors{};  // of each lost worker
  int64_t step = 0;    // the step that all resumed after; counts from 1
  int64_t redone = 0;  // the number of steps that were repeated
  int tries = 0;
  // Seconds, summed over all tries. detect: from the first sign of a loss,
  // or the step's error, until the lost workers were known. decide: until other
  // workers had their places and all states were located. make: making modules
  // and stages. load: loading states. redo: repeating steps.
  double detect = 0, decide = 0, make = 0, load = 0, redo = 0;

  std::string ToString() const;  // one line
};

struct RecoveryOptions {
  // How long a worker that does not answer may take to come back or be declared
  // lost, and how long after that a lost worker's place may stay empty. Then no
  // step is possible.
  std::chrono::milliseconds successor_timeout{30'000};
  // No further try begins after this time.
  std::chrono::milliseconds timeout{180'000};
  // The folder in which this trainer records each state that the workers keep
  // (trainer_journal.h), so that a restarted trainer can continue the training.
  // Each step lists the folder's files. Empty: the training ends with its
  // trainer.
  std::string journal{};
  // Workers keep a new state as soon as the previous one is safe, so a recovery
  // repeats at most the steps of two copies. If these are more than this
  // number, a step waits for the copies.
  int64_t most_redone = 32;
  // How long workers keep the states of a pipeline with a journal once its
  // trainer is gone.
  std::chrono::milliseconds grace{120'000};
  // Called after each recovery, when its steps have been repeated.
  std::function<void(const Recovery&)> on_recovery = nullptr;
};

// A pipeline that survives the loss of workers. Each worker repeatedly copies
// the state of its modules and optimizer to the memory of the next worker,
// concurrently with later steps; a new round of copies begins with the first
// step after all workers have finished the last one. When a worker is lost, all
// return to the last step whose states are complete. A restarted worker of the
// same name, or a spare (rpc/spares.h), makes the lost modules anew and loads
// their state from the copy; then the later steps are repeated. So either all
// workers commit a step or none does, and losses are those of an undisturbed
// training, bit for bit on CPUs.
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
// With RecoveryOptions::journal the trainer may be lost, too. When a restarted
// trainer calls Make with modules of the same kind and number, training
// continues from the newest state in the journal that the workers still have,
// whether a step or Keep made it. resumed() then returns its step and the
// values that the trainer had passed to Note. Once another trainer has taken
// over a training, its workers and the journal refuse every request of the
// earlier trainer with PermissionDenied, which names the other one.
//
// In this process, RRefs and Modules of modules that were made anew remain
// usable (RRef::MoveTo), and so does the optimizer; everything else at a lost
// worker is lost. docs/design/stage_recovery.md lists the failures that a
// pipeline survives. Must not outlive the agent and the optimizer. Confined to
// one thread.
class RecoverablePipeline {
 public:
  // Once this has returned, any worker may be lost. Returns the errors of
  // Pipeline::Make and of the journal, and InvalidArgument for a loss that is a
  // module or for a loss scale, because neither can be recovered.
  static absl::StatusOr<std::unique_ptr<RecoverablePipeline>> Make(
      rpc::Agent& agent, const PipelineOptions& options,
      const RecoveryOptions& recovery,
      const std::vector<RecoveredModule>& modules,
      const RecoveredOptimizer& optimizer);

  // As Pipeline::Step. Pass new tensors to each step, or do not change those of
  // the last RecoveryOptions::most_redone + 2 steps. After an error other than
  // the loss of workers, the state is as it was before the step. DataLoss says
  // that a worker was lost together with the one that kept its state: the
  // training has then returned to the newest checkpoint, which resumed()
  // describes; without a checkpoint, no further step is possible.
  absl::StatusOr<Pipeline::StepResult> Step(const BatchInputs& inputs,
                                            const Tensor& targets);
  // The two halves of Step. At most Pipeline::kMostUnderWay steps, or one with
  // a journal, may be under way: BeginStep returns FailedPrecondition for more.
  // AwaitStep returns the result of the oldest one. After any other error no
  // step is under way. Do not call Checkpointer::Save while a step is under
  // way.
  absl::Status BeginStep(const BatchInputs& inputs, const Tensor& targets);
  absl::StatusOr<Pipeline::StepResult> AwaitStep();
  size_t most_under_way() const {
    return journal_.has_value() ? 1 : Pipeline::kMostUnderWay;
  }
  // Call this while no step is under way.
  absl::StatusOr<Pipeline::EvalResult> Evaluate(
      const BatchInputs& inputs, const Tensor& targets = Tensor());
  // Sets what the journal records about the present state for a restarted
  // trainer; the next step or Keep writes it, if that state is kept. After a
  // return to a checkpoint it is what was passed to Checkpointer::Save.
  void Note(NamedTensors state) { noted_ = std::move(state); }
  // Makes the workers keep the present state as the state after the last step.
  // Call it when something other than a step has changed the state, such as
  // Checkpointer::Resume or Module::LoadStateDict, because a recovery would
  // undo that change. With a journal, call Note first. A trainer that is
  // restarted before Keep has returned, or before the step after a failed Keep
  // has, may find no state. After an error other than DataLoss (see Step), and
  // unless status() is an error, the workers have the state after the last step
  // again: call Note, change the state once more and call Keep again.
  absl::Status Keep();
  // Ends the training: no step follows, and a restarted trainer begins anew.
  absl::Status Finish() const;

  // Sets the checkpoints to return to if states are lost; null: none. They must
  // cover the same modules and optimizer and live as long as steps are taken;
  // they remain usable after recoveries. Once another trainer has taken over
  // the training, their Save returns PermissionDenied.
  void set_checkpoints(Checkpointer* checkpoints) {
    checkpoints_ = checkpoints;
    GuardCheckpoints();
  }
  // Returns how often Step or Evaluate has returned to a checkpoint.
  int64_t returns() const { return returns_; }
  // Returns the error after which no step is possible; OK if steps are.
  const absl::Status& status() const { return status_; }
  // Returns the checkpoint that the training last returned to; before that, the
  // state that Make has continued from.
  const std::optional<Checkpointer::Resumed>& resumed() const {
    return resumed_;
  }
  // Returns how many steps were committed. A return to a checkpoint does not
  // change it.
  int64_t steps() const { return steps_; }
  int64_t recoveries() const { return recoveries_; }
  // Returns the present pipeline; a recovery replaces it.
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

  // Returns the number under which to keep the state after this step, or 0.
  int64_t NumberToKeep(int64_t number);
  Future<Pipeline::StepResult> Run(const Batch& batch);
  // Drops the batches up to the last kept state if it is safe; waits for that
  // only if there are too many batches. Recovers the pipeline if a copy failed.
  absl::Status AwaitSafe();
  Future<void> Safe(int64_t number) const;
  absl::Status NoneUnderWay() const;
  void GiveUpSteps();
  // Returns the number of the newest state all steps up to which have a result.
  int64_t LastDone() const;
  // Repeats until all batches are committed and `rest`, if any, returns OK.
  absl::Status Recover(const absl::Status& cause, const Rest& rest);
  // One attempt: returns the final status, or nullopt to try again because of
  // `why`.
  std::optional<absl::Status> Try(const absl::Status& cause, const Rest& rest,
                                  absl::Status& why, Recovery& record);
  // Waits until all places have a worker.
  absl::Status Decide(Recovery& record);
  // For a trainer with a journal: opens it, claims the training's states and
  // thereby takes over from an earlier trainer.
  absl::Status OpenJournal();
  absl::Status TakeUp();
  // Claims the states of all workers, then reads the journal again, to which
  // the earlier trainer may have added until then.
  absl::Status ClaimStates(std::chrono::steady_clock::time_point deadline);
  // If the workers that keep the newest entry's state were given up but may
  // still be running, waits for them and claims their states, too.
  absl::Status AwaitKeepers();
  // Returns the number by which the journal identifies this trainer.
  uint64_t trainer() const { return options_.epoch / kEpochsOfTrainer; }
  // Writes an entry for the present state, which has, or will have, this
  // number.
  absl::Status WriteJournal(int64_t number) const;
  // Call this before each step; `last` is the number of the present state.
  // Writes the journal if that state is kept. Returns PermissionDenied if
  // another trainer has taken over the training.
  absl::Status NoteStep(int64_t last) const;
  StateClaim Claim(bool takes_up) const;
  void GuardCheckpoints();
  // Returns until when to wait, from now on, for workers that do not answer.
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
  // The steps since the last safe state.
  std::deque<Batch> batches_;
  std::deque<Future<Pipeline::StepResult>> under_way_;  // of the last ones
  // The newest state that was kept or is to be kept, and whether it is safe at
  // all workers; unset while its step is under way.
  int64_t kept_ = 0;
  std::optional<Future<void>> safe_;
  // The last safe state before kept_, or the initial one, if that is later.
  int64_t last_safe_ = 0;
  std::optional<Checkpointer::Resumed> resumed_;
  Checkpointer* checkpoints_ = nullptr;
  absl::Status status_;  // an error after which no step is possible
  // The number of the state after the next step, or after the oldest one under
  // way. Each step's state has a number, whether it is kept or not, and so have
  // the states that Keep keeps.
  int64_t next_ = 1;
  int64_t steps_ = 0;
  bool goes_back_ = false;  // this recovery has begun to load a checkpoint
  int64_t recoveries_ = 0;
  int64_t returns_ = 0;
};

}  // namespace baton::dist
