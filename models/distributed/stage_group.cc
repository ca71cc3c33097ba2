// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_group.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "autograd/distributed/engine.h"
#include "autograd/distributed/step_count.h"
#include "core/status.h"
#include "models/distributed/micro_batches.h"

namespace baton::dist {
namespace {

using StepClock = std::chrono::steady_clock;

// Longer limits mean no limit; adding them to a time would overflow.
constexpr std::chrono::hours kFarAway{24 * 365};
// The number of steps that are remembered, because messages of a finished step
// may arrive late.
constexpr size_t kRemembered = 16;
constexpr char kBrokeBefore[] = "the step before it broke";

}  // namespace

absl::StatusOr<std::unique_ptr<StageGroup>> StageGroup::Make(
    const std::vector<RRef<Stage>>& stages, int32_t compute_threads,
    const std::vector<RRef<StageGroup>>& others) {
  std::vector<std::shared_ptr<Stage>> local;
  for (const RRef<Stage>& stage : stages) {
    ASSIGN_OR_RETURN(auto here, stage.LocalValue());
    local.push_back(std::move(here));
  }
  if (local.empty()) {
    return absl::InvalidArgumentError("a worker's group needs a stage");
  }
  return std::make_unique<StageGroup>(std::move(local), compute_threads,
                                      others);
}

StageGroup::StageGroup(std::vector<std::shared_ptr<Stage>> stages,
                       int compute_threads,
                       std::vector<RRef<StageGroup>> others)
    : stages_(std::move(stages)),
      compute_threads_(compute_threads),
      others_(std::move(others)),
      compute_(std::make_unique<ThreadPool>(
          1, absl::StrCat("stage-", stages_.front()->spec().index))) {
  for (const auto& stage : stages_) {
    for (auto& lock : stage->locks()) locks_.push_back(std::move(lock));
    const Device device = stage->module().device();
    auto number = absl::c_find_if(
        numbers_, [&](const auto& each) { return each->device() == device; });
    if (number == numbers_.end())
      number = numbers_.insert(number, std::make_shared<StepNumber>(device));
    stage->set_number(*number);
  }
}

StageGroup::~StageGroup() {
  std::map<uint64_t, std::shared_ptr<Progress>> steps;
  {
    MutexLock lock(mutex_);
    steps = steps_;
  }
  for (const auto& [step, progress] : steps)
    progress->Break(absl::CancelledError("the stages were dropped"));
  compute_.reset();  // joins its threads while the other members still exist
}

absl::Status StageGroup::Check(const StepPlan& plan) const {
  RETURN_IF_ERROR(
      CatchErrors([&] { SplitRows(plan.rows, plan.micro_batches); }));
  if (plan.steps && !plan.training) {
    return absl::InvalidArgumentError("only training steps parameters");
  }
  std::vector<int> here;
  for (const auto& stage : stages_) {
    here.push_back(stage->spec().index);
    if (plan.training && stage->spec().is_last() && plan.loss == Loss::kNone)
      return absl::InvalidArgumentError("training needs a loss");
    if (plan.loss == Loss::kOwn && stage->spec().is_last() &&
        stage->loss() == nullptr)
      return absl::InvalidArgumentError("the last stage has no own loss");
  }
  return CheckProgram(plan.program, here,
                      static_cast<int>(plan.micro_batches.size()));
}

absl::StatusOr<std::shared_ptr<StageGroup::Progress>> StageGroup::Open(
    uint64_t step) {
  std::shared_ptr<Progress> made;
  {
    MutexLock lock(mutex_);
    if (step < oldest_) {
      return absl::AbortedError(absl::StrCat("step ", step, " is over"));
    }
    if (const auto found = steps_.find(step); found != steps_.end())
      return found->second;
    std::vector<std::shared_ptr<MailLinks>> mail;
    for (const auto& stage : stages_) {
      ASSIGN_OR_RETURN(mail.emplace_back(), stage->Open(step));
    }
    made = std::make_shared<Progress>(step, std::move(mail), numbers_);
    steps_.emplace(step, made);
  }
  Progress::BreakByDeliveries(made);
  return made;
}

absl::StatusOr<StageGroup::KnownPlan> StageGroup::PlanOf(
    const StepOrder& order) {
  KnownPlan made;
  if (order.new_plan.has_value()) {
    RETURN_IF_ERROR(Check(*order.new_plan));
    auto plan = std::make_shared<StepPlan>(*order.new_plan);
    // The plan must not keep the optimizer alive: its owner may drop it.
    if (plan->optimizer.has_value()) {
      ASSIGN_OR_RETURN(made.optimizer, plan->optimizer->LocalValue());
      plan->optimizer = RRef<OptimizerHost>();
    }
    if (plan->keeper.has_value()) {
      ASSIGN_OR_RETURN(made.keeper, plan->keeper->LocalValue());
      plan->keeper = RRef<StateKeeper>();
    }
    made.plan = std::move(plan);
  }
  // Released without the lock, because that may wait for a GPU.
  std::vector<KnownPlan> unused;
  MutexLock lock(mutex_);
  while (!plans_.empty() && plans_.begin()->first < order.oldest_plan)
    unused.push_back(plans_.extract(plans_.begin()).mapped());
  if (made.plan != nullptr) plans_[made.plan->id] = made;
  const auto found = plans_.find(order.plan);
  if (found == plans_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no plan ", order.plan));
  }
  return found->second;
}

absl::Status StageGroup::Prepare(Task& task) {
  ASSIGN_OR_RETURN(KnownPlan known, PlanOf(task.order));
  task.order.new_plan.reset();
  task.plan = std::move(known.plan);
  task.recorded = std::move(known.recorded);
  task.batch = {task.order.inputs, task.order.targets};
  if (task.order.loss_scale != 0) {
    const Stage& last = *stages_.back();
    const Device device =
        last.loss() == nullptr ? last.module().device() : last.loss()->device();
    RETURN_IF_ERROR(CatchErrors([&] {
      task.batch.loss_scale =
          Tensor::Full(Shape(), task.order.loss_scale, {.device = device});
    }));
  }
  if (task.order.replay == Replay::kProgram) {
    if (task.recorded == nullptr)
      return absl::FailedPreconditionError("the program is not recorded");
    // Uploads while the GPUs may still be busy with the previous step.
    ASSIGN_OR_RETURN(task.batch, task.recorded->Upload(task.batch));
  }
  if (task.plan->optimizer.has_value()) {
    task.optimizer = known.optimizer.lock();
    if (task.optimizer == nullptr)
      return absl::FailedPreconditionError("the optimizer was dropped");
  }
  if (task.plan->keeper.has_value()) {
    task.keeper = known.keeper.lock();
    if (task.keeper == nullptr)
      return absl::FailedPreconditionError("the keeper of states was dropped");
    RETURN_IF_ERROR(task.keeper->Check());
  }
  if (task.plan->training) {
    if (!task.plan->steps) {
      ASSIGN_OR_RETURN(task.context, ContextOf(task.call));
    }
    MutexLock lock(mutex_);
    task.replicas = replicas_;
  }
  return absl::OkStatus();
}

Future<GroupReport> StageGroup::Run(rpc::CallContext& call,
                                    const StepOrder& order) {
  const TaskPtr task(new Task{call, order});
  task->deadline = StepClock::now() + std::min<std::chrono::milliseconds>(
                                          order.time_left, kFarAway);
  auto progress = Open(order.step);
  if (!progress.ok()) return ReadyFuture<GroupReport>(progress.status());
  {
    MutexLock lock(mutex_);
    if (std::exchange((*progress)->begun, true)) {
      return ReadyFuture<GroupReport>(absl::InvalidArgumentError(
          absl::StrCat("step ", order.step, " was ordered twice")));
    }
  }
  task->progress = *std::move(progress);
  Watch(task);
  if (absl::Status status = Prepare(*task); !status.ok()) {
    End(task, status);
    return task->report.future();
  }
  call.OnCancel([progress = task->progress](const absl::Status& why) {
    progress->Break(Annotate(why, "the trainer gave up the step"));
  });
  BeforeOf(*task).OnReady([this, task](const absl::Status& before) {
    if (before.ok()) {
      Begin(task);
    } else {
      End(task, Annotate(before, kBrokeBefore));
    }
  });
  return task->report.future();
}

Future<void> StageGroup::BeforeOf(const Task& task) {
  if (task.order.after == 0) return ReadyFuture<void>(absl::OkStatus());
  auto before = Open(task.order.after);
  if (!before.ok()) return ReadyFuture<void>(absl::OkStatus());
  if (task.order.replay != Replay::kProgram) return (*before)->over.future();
  // Immediately, because GPUs may be about to begin this step.
  (*before)->agreed.future().OnReady(
      [progress = task.progress](const absl::StatusOr<double>& agreed) {
        if (!agreed.ok())
          progress->Break(Annotate(agreed.status(), kBrokeBefore));
      });
  return (*before)->given.future();
}

void StageGroup::Begin(const TaskPtr& task) {
  task->turn = StepClock::now();
  const StepOrder& order = task->order;
  // GPUs may still be busy with the previous step.
  const uint64_t oldest = order.replay == Replay::kProgram && order.after != 0
                              ? order.after
                              : order.step;
  std::vector<std::shared_ptr<Progress>> older;
  {
    MutexLock lock(mutex_);
    for (const auto& [step, progress] : steps_) {
      if (step < oldest) older.push_back(progress);
    }
    for (; steps_.size() > kRemembered; steps_.erase(steps_.begin()))
      oldest_ = steps_.begin()->first + 1;
  }
  // If an older step is not over, the trainer has given it up.
  for (const auto& progress : older)
    progress->Break(absl::AbortedError("a newer step began"));
  for (const auto& stage : stages_) stage->Begin(oldest, order.oldest_plan);
  rpc::HoldObjects(
      task->call, locks_, rpc::Access::kExclusive,
      [this, task](absl::StatusOr<rpc::ObjectHold> hold) {
        if (!hold.ok()) {
          End(task, hold.status());
          return;
        }
        compute_->Post([this, task, hold = *std::move(hold)]() mutable {
          if (GoesByItself(*task)) return Give(task, std::move(hold));
          auto report = Execute(*task, std::move(hold));
          End(task, std::move(report));
        });
      });
}

void StageGroup::End(const TaskPtr& task, absl::StatusOr<GroupReport> report) {
  if (!report.ok()) return Finish(*task, std::move(report));
  task->progress->Delivered().OnReady(
      [task, report = *std::move(report)](const absl::Status& delivered) {
        if (delivered.ok()) {
          Finish(*task, report);
        } else {
          Finish(*task, delivered);
        }
      });
}

void StageGroup::Finish(const Task& task, absl::StatusOr<GroupReport> report) {
  const Progress& progress = *task.progress;
  const absl::Status why =
      report.ok() ? absl::AbortedError("the step is over") : report.status();
  // The other replicas are waiting for what this one will not send.
  for (const auto& replicas : task.replicas)
    if (!report.ok()) replicas->Abort(why);
  if (report.ok()) {
    progress.ran.Set(0.0);
    progress.agreed.Set(0.0);
    if (task.plan->steps) CountStep(task.call.agent());
  } else {
    progress.ran.Set(report.status());
  }
  progress.Break(why);
  progress.EndMail(why);
  progress.given.Set(report.status());
  progress.over.Set(report.status());
  task.report.Set(std::move(report));
}

Future<void> StageGroup::Abort(uint64_t step, const absl::Status& why) {
  auto progress = Open(step);
  if (!progress.ok()) return ReadyFuture<void>(absl::OkStatus());
  (*progress)->Break(why);
  bool begun = false;
  {
    MutexLock lock(mutex_);
    begun = (*progress)->begun;
  }
  if (!begun) {
    (*progress)->given.Set(why);
    (*progress)->over.Set(why);
  }
  Promise<void> done;
  (*progress)->over.future().OnReady(
      [done](const absl::Status&) { done.Set(absl::OkStatus()); });
  return done.future();
}

Future<void> StageGroup::JoinReplicas(rpc::CallContext& call,
                                      const std::string& name,
                                      const std::vector<std::string>& workers,
                                      int64_t timeout_ms) {
  std::vector<StageReplicas::Made> making;
  for (const auto& stage : stages_) {
    rpc::GroupOptions options;
    options.name = absl::StrCat(name, "/stage ", stage->spec().index);
    options.members = workers;
    options.timeout = std::chrono::milliseconds(timeout_ms);
    making.push_back(rpc::ProcessGroup::Make(call.agent(), options)
                         .Then([stage](const StageReplicas::Group& group) {
                           return StageReplicas::Make(stage->module(), group);
                         }));
  }
  return WaitAll(making).Then(
      [self = shared_from_this()](const Replicas& made) {
        MutexLock lock(self->mutex_);
        self->replicas_ = made;
      });
}

std::vector<Device> StageGroup::Devices() const {
  std::vector<Device> devices;
  for (const auto& stage : stages_) devices.push_back(stage->module().device());
  return devices;
}

std::vector<PipelineLink> StageGroup::Links(rpc::CallContext& call) const {
  const rpc::DebugInfo here = call.agent().GetDebugInfo();
  std::vector<PipelineLink> links;
  for (const auto& stage : stages_) {
    for (const auto& [target, behind] : stage->behind()) {
      const std::string& receiver = behind.owner().name;
      const Stage::WindowState window = stage->WindowTo(target);
      links.push_back({stage->spec().index, target, here.self.name, receiver,
                       behind.is_owner() ? kLocalPath
                       : window.used     ? kWindowPath
                                         : PathTo(receiver, here),
                       window.why_not});
    }
  }
  return links;
}

}  // namespace baton::dist
