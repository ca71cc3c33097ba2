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
#include "rpc/object_lock.h"

namespace baton::dist {

// The stages of one pipeline at one worker. Runs the program of each step that
// the trainer orders, all stages in the program's order, on its own compute
// thread. Other calls of the modules wait until the program has run. Steps run
// in order; a step that is ordered early runs after the previous one is over
// here.
//
// Gradients of parameters go to the context of the Run, or to an optimizer of
// this worker. With an optimizer, no worker steps parameters before all have
// run their programs: each group tells the first worker's group, by gates of
// windows (StepGate) or by messages, which then tells all others. If a program
// fails, or a worker is lost before the first group has agreed, then
// parameters, the optimizers' state, running statistics and generators stay as
// they were at all workers. If a worker is lost while the agreement is passed
// on, or an optimizer fails, some workers may have stepped.
//
// An error fails the step at all workers, through the trainer or the first
// worker, and also later steps; so does a delivery that another worker does not
// accept. Thread-safe.
class StageGroup : public std::enable_shared_from_this<StageGroup> {
 public:
  // `stages` must be at this worker. `compute_threads` is 0 for the worker's
  // own setting. `others`, the other groups of the pipeline, are for the first
  // stage's group.
  static absl::StatusOr<std::unique_ptr<StageGroup>> Make(
      const std::vector<RRef<Stage>>& stages, int32_t compute_threads,
      const std::vector<RRef<StageGroup>>& others);
  StageGroup(std::vector<std::shared_ptr<Stage>> stages, int compute_threads,
             std::vector<RRef<StageGroup>> others);
  ~StageGroup();  // breaks the steps under way

  // Done when the whole program has run and, if the plan says so, parameters
  // are stepped. Training without such a step needs a dist::Context.
  Future<GroupReport> Run(rpc::CallContext& call, const StepOrder& order);
  // Fails the step unless its parameters are already agreed to be stepped; done
  // when no part of it runs here any more.
  Future<void> Abort(uint64_t step, const absl::Status& why);

  // Called by the first group for steps that are agreed by messages. Done when
  // the step's program has run here.
  // Returns the square norm of the gradients to step by here, if the step asks
  // for it. If the first group gives the call up, the step fails here.
  Future<double> Ran(rpc::CallContext& call, uint64_t step);
  // Called by the first group after all programs have run: parameters are to be
  // stepped. `square_norm` is that of all workers.
  void Agree(uint64_t step, double square_norm);

  // Makes the groups of these workers, in pipelines that are alike, replicas.
  // Each of the workers must call this between steps; done when all have. Each
  // stage takes over the parameters and buffers of the first replica's stage,
  // and gradients are the mean over all (StageReplicas). A training step that
  // fails at one replica fails at all, and so do later steps.
  Future<void> JoinReplicas(rpc::CallContext& call, const std::string& name,
                            const std::vector<std::string>& workers,
                            int64_t timeout_ms);

  // Returns the device of each stage of this worker, in order.
  std::vector<Device> Devices() const;
  // Returns the links from the stages at this worker.
  std::vector<PipelineLink> Links(rpc::CallContext& call) const;

  using Exports =
      rpc::Methods<&StageGroup::Make, rpc::kConcurrent<&StageGroup::Run>,
                   rpc::kConcurrent<&StageGroup::Abort>,
                   rpc::kConcurrent<&StageGroup::Ran>,
                   rpc::kConcurrent<&StageGroup::Agree>,
                   rpc::kConcurrent<&StageGroup::JoinReplicas>,
                   rpc::kConcurrent<&StageGroup::Devices>,
                   rpc::kConcurrent<&StageGroup::Links>>;

 private:
  using Progress = StepProgress;
  using Replicas = std::vector<std::shared_ptr<StageReplicas>>;
  struct KnownPlan {
    std::shared_ptr<const StepPlan> plan;
    std::weak_ptr<OptimizerHost> optimizer;
    std::weak_ptr<StateKeeper> keeper;
    std::shared_ptr<RecordedProgram> recorded;  // null until it is recorded
  };
  // A step that Run was called for, and what it needs.
  struct Task {
    rpc::CallContext call;
    StepOrder order;
    std::shared_ptr<const StepPlan> plan = nullptr;
    // Null: no parameters are stepped.
    std::shared_ptr<OptimizerHost> optimizer = nullptr;
    std::shared_ptr<StateKeeper> keeper = nullptr;  // null: no state is kept
    std::shared_ptr<RecordedProgram> recorded = nullptr;
    ProgramRun::Batch batch = {};  // the order's batch, on the devices that
                                   // read it
    std::shared_ptr<Progress> progress = nullptr;
    std::shared_ptr<ContextState> context = nullptr;  // null where none is used
    Replicas replicas = {};  // one for each stage in training; may be empty
    MailLinks::Deadline deadline{};
    MailLinks::Deadline turn{};  // when the previous step was over
    Promise<GroupReport> report = Promise<GroupReport>();
  };
  using TaskPtr = std::shared_ptr<Task>;

  absl::Status Check(const StepPlan& plan) const;
  // Returns Aborted for a step that was over long ago.
  absl::StatusOr<std::shared_ptr<Progress>> Open(uint64_t step);
  // Registers the plan if it is new. Returns FailedPrecondition if it is
  // unknown.
  absl::StatusOr<KnownPlan> PlanOf(const StepOrder& order);
  absl::Status Prepare(Task& task);
  // Done when the previous step allows this one to begin here.
  Future<void> BeforeOf(const Task& task);
  void Watch(const TaskPtr& task) const;
  void Begin(const TaskPtr& task);
  absl::Status BeginLinks(const Task& task) const;
  static void DrainLinks(const Task& task);
  std::vector<MadeWindow> MakeWindows(const Task& task) const;
  // Returns true if GPUs reach the end of the step without the host.
  static bool GoesByItself(const Task& task);
  // Enqueues such a step on the GPUs; another thread waits for its end. Called
  // on the compute thread.
  void Give(const TaskPtr& task, rpc::ObjectHold hold) const;
  absl::StatusOr<GroupReport> GiveProgram(const Task& task) const;
  static void HearEnd(const TaskPtr& task, absl::StatusOr<GroupReport> report);
  // Returns an error if a link has ended the step, or if the GPUs have decided
  // that the step does not count.
  absl::Status Decided(const Task& task) const;
  // Runs the step's program, on the compute thread, and releases the modules at
  // its end.
  absl::StatusOr<GroupReport> Execute(const Task& task, rpc::ObjectHold hold);
  absl::StatusOr<GroupReport> RunProgram(const Task& task) const;
  absl::StatusOr<GroupReport> ReplayProgram(const Task& task) const;
  // Records the program for later steps of the plan; the report says why it
  // cannot.
  void RecordProgram(const Task& task, GroupReport& report);
  // Runs the program (a ProgramRun or a RecordedProgram), and steps parameters
  // or leaves their gradients.
  template <typename Program>
  absl::StatusOr<GroupReport> Complete(const Task& task, Program& program,
                                       const StepTrace* trace) const;
  static bool IsTraced(const Task& task);
  static void Report(const Task& task, const StepTrace& trace, double waited,
                     GroupReport& report);
  // Steps parameters, unless gradients have overflowed at some worker; then the
  // report says so.
  absl::Status StepParameters(const Task& task, LeafGradients gradients,
                              GroupReport& report) const;
  // Waits until all programs have run; this one has. Returns the square norm of
  // all workers' gradients, of which `square_norm` are from here.
  absl::StatusOr<double> Agreed(const Task& task, double square_norm) const;
  // Hears from the workers below this one in the tree of gates, tells the one
  // above, and passes its answer on.
  absl::Status PassGates(const Task& task) const;
  absl::Status StepHeld(const Task& task, const LeafGradients& gradients,
                        const StepRequest& request,
                        const optim::SkipOn& skip_on = nullptr) const;
  // Copies the state after the step, if the trainer wants it to be kept.
  static void KeepHeld(const Task& task);
  // Finishes the step; after a success, first waits until other workers have
  // received everything that was sent.
  static void End(const TaskPtr& task, absl::StatusOr<GroupReport> report);
  static void Finish(const Task& task, absl::StatusOr<GroupReport> report);

  const std::vector<std::shared_ptr<Stage>> stages_;
  const int compute_threads_;
  const std::vector<RRef<StageGroup>> others_;
  std::vector<std::shared_ptr<rpc::ObjectLock>> locks_;  // the modules' locks
  std::vector<std::shared_ptr<StepNumber>> numbers_;     // one for each device
  Mutex mutex_;
  std::map<uint64_t, KnownPlan> plans_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<Progress>> steps_ ABSL_GUARDED_BY(mutex_);
  Replicas replicas_ ABSL_GUARDED_BY(mutex_);
  uint64_t oldest_ ABSL_GUARDED_BY(mutex_) = 0;  // the oldest step that is
                                                 // remembered
  // Runs one program at a time.
  std::unique_ptr<ThreadPool> compute_;
};

}  // namespace baton::dist
