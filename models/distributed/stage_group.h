// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context_state.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/mail_links.h"
#include "models/distributed/pipeline_link.h"
#include "models/distributed/program_run.h"
#include "models/distributed/recorded_program.h"
#include "models/distributed/stage.h"
#include "models/distributed/stage_replicas.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/step_progress.h"
#include "rpc/agent.h"
#include "rpc/object_hold.h"

namespace baton::dist {

// The stages of one pipeline that one worker has: runs the program of each step
// that the trainer orders, all stages in that one order, on a compute thread of
// its own. Other calls of the modules wait until it has run. Steps run in the
// order in which they follow each other, those that are ordered early once the
// one before is over here.
//
// Gradients of parameters go to the context of the Run, or to an optimizer of
// this worker. Then no worker steps parameters before all have run their
// programs: the first worker's group is told by each of the others, and tells
// them. An error in a program, and the loss of a worker before that word is
// given, leaves parameters, their state, running statistics and generators
// everywhere as they were; a worker that is lost while the word is passed on,
// and an error of the optimizer itself, may leave some workers stepped.
//
// An error breaks the step at all workers, through the first one, and fails
// those that follow it; so does a delivery to another worker that it does not
// take. Thread-safe.
class StageGroup : public std::enable_shared_from_this<StageGroup> {
 public:
  // The stages are here. `compute_threads`: 0 for the worker's own setting.
  // `others`: of the same pipeline, for the group of the first stage.
  static absl::StatusOr<std::unique_ptr<StageGroup>> Make(
      const std::vector<RRef<Stage>>& stages, int32_t compute_threads,
      const std::vector<RRef<StageGroup>>& others);
  StageGroup(std::vector<std::shared_ptr<Stage>> stages, int compute_threads,
             std::vector<RRef<StageGroup>> others);
  ~StageGroup();  // breaks the steps under way

  // Done when the whole program has run, and parameters are stepped where the
  // plan says so. Training without that needs a dist::Context.
  Future<GroupReport> Run(rpc::CallContext& call, const StepOrder& order);
  // Breaks the step, unless it is agreed that parameters are stepped; done when
  // nothing of it runs here any more.
  Future<void> Abort(uint64_t step, const absl::Status& why);

  // For the first group. Done when the step's program has run here: the square
  // norm of the gradients that are stepped by here, where the step asks for it.
  Future<double> Ran(uint64_t step);
  // All programs have run: parameters are to be stepped. `square_norm`: of all.
  void Agree(uint64_t step, double square_norm);

  // Between steps: these workers' groups, of pipelines that are alike, are
  // replicas from now on, each of which calls this; done when all have. Each of
  // their stages takes its parameters and buffers from the first one's, and its
  // gradients are the mean over all (StageReplicas). A training step that
  // breaks at one breaks it at all, and all that follow.
  Future<void> JoinReplicas(rpc::CallContext& call, const std::string& name,
                            const std::vector<std::string>& workers,
                            int64_t timeout_ms);

  // From the stages that are here.
  std::vector<PipelineLink> Links(rpc::CallContext& call) const;

  using Exports =
      rpc::Methods<&StageGroup::Make, rpc::kConcurrent<&StageGroup::Run>,
                   rpc::kConcurrent<&StageGroup::Abort>,
                   rpc::kConcurrent<&StageGroup::Ran>,
                   rpc::kConcurrent<&StageGroup::Agree>,
                   rpc::kConcurrent<&StageGroup::JoinReplicas>,
                   rpc::kConcurrent<&StageGroup::Links>>;

 private:
  using Progress = StepProgress;
  using Replicas = std::vector<std::shared_ptr<StageReplicas>>;
  struct KnownPlan {
    std::shared_ptr<const StepPlan> plan;
    std::weak_ptr<OptimizerHost> optimizer;
    std::weak_ptr<StateKeeper> keeper;
    std::shared_ptr<RecordedProgram> recorded;  // once it is
  };
  // A Run and what it needs.
  struct Task {
    rpc::CallContext call;
    StepOrder order;
    std::shared_ptr<const StepPlan> plan = nullptr;
    std::shared_ptr<OptimizerHost> optimizer = nullptr;  // null: none steps
    std::shared_ptr<StateKeeper> keeper = nullptr;  // null: nothing is kept
    std::shared_ptr<RecordedProgram> recorded = nullptr;
    ProgramRun::Batch batch = {};  // the order's, where it is best read
    std::shared_ptr<Progress> progress = nullptr;
    std::shared_ptr<ContextState> context = nullptr;  // null where none is used
    Replicas replicas = {};  // of each stage, where it trains and has any
    MailLinks::Deadline deadline{};
    MailLinks::Deadline turn{};  // when the step before was over
    Promise<GroupReport> report = Promise<GroupReport>();
  };
  using TaskPtr = std::shared_ptr<Task>;

  absl::Status Check(const StepPlan& plan) const;
  // Aborted for a step that was over long ago.
  absl::StatusOr<std::shared_ptr<Progress>> Open(uint64_t step);
  // Lets the group know the plan, if it is new. Else FailedPrecondition.
  absl::StatusOr<KnownPlan> PlanOf(const StepOrder& order);
  absl::Status Prepare(Task& task);
  // Until the step may begin here, after the one before.
  Future<void> BeforeOf(const Task& task);
  void Watch(const TaskPtr& task) const;
  void Begin(const TaskPtr& task);
  absl::Status BeginLinks(const Task& task) const;
  static void DrainLinks(const Task& task);
  std::vector<MadeWindow> MakeWindows(const Task& task) const;
  // Whether GPUs come to the end of the step by themselves.
  static bool GoesByItself(const Task& task);
  // On the compute thread: gives GPUs all of such a step, whose end another
  // thread hears of.
  void Give(const TaskPtr& task, rpc::ObjectHold hold) const;
  absl::StatusOr<GroupReport> GiveProgram(const Task& task) const;
  static void HearEnd(const TaskPtr& task, absl::StatusOr<GroupReport> report);
  // Whether the GPUs' word, if it is theirs, was that it counts.
  absl::Status Decided(const Task& task) const;
  // On the compute thread; lets go of the modules at its end.
  absl::StatusOr<GroupReport> Execute(const Task& task, rpc::ObjectHold hold);
  absl::StatusOr<GroupReport> RunProgram(const Task& task) const;
  absl::StatusOr<GroupReport> ReplayProgram(const Task& task) const;
  // For steps of the plan to come; says why not, if it cannot.
  std::string RecordProgram(const Task& task);
  // Runs the program (a ProgramRun or a RecordedProgram), and steps parameters
  // or leaves their gradients.
  template <typename Program>
  absl::StatusOr<GroupReport> Complete(const Task& task, Program& program,
                                       const StepTrace* trace) const;
  static bool IsTraced(const Task& task);
  static void Report(const Task& task, const StepTrace& trace, double waited,
                     GroupReport& report);
  // Unless gradients have overflowed at some worker, which the report says
  // then.
  absl::Status StepParameters(const Task& task, LeafGradients gradients,
                              GroupReport& report) const;
  absl::Status StepHeld(const Task& task, const LeafGradients& gradients,
                        const StepRequest& request,
                        const optim::SkipOn& skip_on = nullptr) const;
  // Until the state before the step is safe, or the step is broken.
  static absl::Status AwaitSafe(const Task& task);
  // Once other workers have taken what was sent, where it went well.
  static void End(const TaskPtr& task, absl::StatusOr<GroupReport> report);
  static void Finish(const Task& task, absl::StatusOr<GroupReport> report);

  const std::vector<std::shared_ptr<Stage>> stages_;
  const int compute_threads_;
  const std::vector<RRef<StageGroup>> others_;
  std::vector<std::shared_ptr<rpc::ObjectLock>> locks_;  // of the modules
  std::vector<std::shared_ptr<StepNumber>> numbers_;     // of each device
  Mutex mutex_;
  std::map<uint64_t, KnownPlan> plans_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<Progress>> steps_ ABSL_GUARDED_BY(mutex_);
  Replicas replicas_ ABSL_GUARDED_BY(mutex_);
  uint64_t oldest_ ABSL_GUARDED_BY(mutex_) = 0;  // that is remembered
  // Runs one program at a time.
  std::unique_ptr<ThreadPool> compute_;
};

}  // namespace baton::dist
