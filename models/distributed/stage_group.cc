// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_group.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "autograd/distributed/engine.h"
#include "core/parallel.h"
#include "core/status.h"
#include "models/distributed/micro_batches.h"

namespace baton::dist {
namespace {

using StepClock = std::chrono::steady_clock;

// Longer limits, which mean none, would overflow what is added to them.
constexpr std::chrono::hours kFarAway{24 * 365};
// Steps that are remembered: word of one that is over may come late.
constexpr size_t kRemembered = 16;
constexpr char kBrokeBefore[] = "the step before it broke";
// For a neighbour to make its part.
constexpr std::chrono::milliseconds kMakeWindows{10'000};

double SecondsSince(StepClock::time_point begin) {
  return std::chrono::duration<double>(StepClock::now() - begin).count();
}

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
  compute_.reset();  // joins, while the rest is still there
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
    // The plan does not keep it: its owner may drop it.
    if (plan->optimizer.has_value()) {
      ASSIGN_OR_RETURN(made.optimizer, plan->optimizer->LocalValue());
      plan->optimizer = RRef<OptimizerHost>();
    }
    made.plan = std::move(plan);
  }
  // Let go of without the lock, as that may wait for a GPU.
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
  if (task.order.replay == Replay::kProgram) {
    if (task.recorded == nullptr)
      return absl::FailedPreconditionError("the program is not recorded");
    // While the GPUs may still be busy with the step before.
    ASSIGN_OR_RETURN(task.batch, task.recorded->Upload(task.batch));
  }
  if (task.plan->optimizer.has_value()) {
    task.optimizer = known.optimizer.lock();
    if (task.optimizer == nullptr)
      return absl::FailedPreconditionError("the optimizer was dropped");
  }
  if (task.plan->training && !task.plan->steps) {
    ASSIGN_OR_RETURN(task.context, ContextOf(task.call));
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
  (*before)->over.future().OnReady(
      [progress = task.progress](const absl::Status& over) {
        if (!over.ok()) progress->Break(Annotate(over, kBrokeBefore));
      });
  return (*before)->given.future();
}

void StageGroup::Begin(const TaskPtr& task) {
  task->turn = StepClock::now();
  const StepOrder& order = task->order;
  // GPUs may still be busy with the one before.
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
  // One that is not over was given up by the trainer.
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

template <typename Program>
absl::StatusOr<GroupReport> StageGroup::Complete(const Task& task,
                                                 Program& program,
                                                 const StepTrace* trace) const {
  const double waited = SecondsSince(task.turn);
  GroupReport report;
  const absl::Status status = CatchErrors([&]() -> absl::Status {
    RETURN_IF_ERROR(program.Run());
    DrainLinks(task);
    RETURN_IF_ERROR(Decided(task));
    report.last = program.Report();
    if (task.plan->steps) return StepParameters(task, program.TakeGradients());
    if (!task.plan->training) return absl::OkStatus();
    for (const auto& [leaf, gradient] : program.TakeGradients())
      task.context->Accumulate(leaf, gradient);
    return absl::OkStatus();
  });
  if (!status.ok()) program.Undo();
  // What a broken step still sends must not meet the next one.
  DrainLinks(task);
  if (trace != nullptr && status.ok()) Report(task, *trace, waited, report);
  RETURN_IF_ERROR(status);
  return report;
}

bool StageGroup::GoesByItself(const Task& task) {
  return task.order.replay == Replay::kProgram &&
         task.recorded->skip().defined() && !task.call.agent().tracer()->on() &&
         task.order.request.clip_norm == optim::Clip::kNone;
}

void StageGroup::Give(const TaskPtr& task, rpc::ObjectHold hold) const {
  const rpc::internal::HoldsOfThread within(hold.holds());
  auto report = CatchErrors([&] { return GiveProgram(*task); });
  // What was given of it ends all the same.
  if (!report.ok()) task->progress->Break(report.status());
  const absl::Status heard = CatchErrors([&] {
    AfterWork(CurrentStream(numbers_.front()->device()),
              [task, report] { HearEnd(task, report); });
  });
  // The times of a step are lost with the next one.
  if (!heard.ok()) {
    End(task, heard);
  } else if (report.ok() && !task->order.timed) {
    task->progress->given.Set(absl::OkStatus());
  }
}

absl::StatusOr<GroupReport> StageGroup::GiveProgram(const Task& task) const {
  RecordedProgram& program = *task.recorded;
  RETURN_IF_ERROR(program.Put(task.batch));
  RETURN_IF_ERROR(BeginLinks(task));
  for (const auto& links : task.progress->mail) RETURN_IF_ERROR(links->ended());
  if (task.order.timed) program.trace().BeginInOrder();
  RETURN_IF_ERROR(program.Run());
  GroupReport report;
  report.last = program.Report();
  RETURN_IF_ERROR(StepHeld(task, program.TakeGradients(), task.order.request,
                           [&](Device) { return program.skip(); }));
  return report;
}

void StageGroup::HearEnd(const TaskPtr& task,
                         absl::StatusOr<GroupReport> report) {
  const Progress& progress = *task->progress;
  if (report.ok() && progress.numbers.front()->decided() >= task->order.step) {
    progress.agreed.Set(0.0);
    if (task->order.timed)
      report->times = TimesOf(task->recorded->trace().Spans());
    End(task, std::move(report));
    return;
  }
  absl::Status why = report.status();
  for (const auto& links : progress.mail) why.Update(links->ended());
  if (why.ok()) why = absl::AbortedError("another worker gave up the step");
  End(task, std::move(why));
}

absl::Status StageGroup::Decided(const Task& task) const {
  for (const auto& links : task.progress->mail) RETURN_IF_ERROR(links->ended());
  if (task.order.replay == Replay::kProgram &&
      task.recorded->skip().defined() &&
      numbers_.front()->decided() < task.order.step)
    return absl::AbortedError("another worker gave up the step");
  return absl::OkStatus();
}

absl::StatusOr<GroupReport> StageGroup::Execute(const Task& task,
                                                rpc::ObjectHold hold) {
  const rpc::internal::HoldsOfThread within(hold.holds());
  if (compute_threads_ > 0) SetComputeThreads(compute_threads_);
  return CatchErrors([&]() -> absl::StatusOr<GroupReport> {
    RETURN_IF_ERROR(BeginLinks(task));
    auto report = task.order.replay == Replay::kProgram ? ReplayProgram(task)
                                                        : RunProgram(task);
    if (!report.ok()) return report;
    if (task.order.make_windows != Windows::kOff)
      report->windows = MakeWindows(task);
    if (task.order.record) report->why_not_recorded = RecordProgram(task);
    return report;
  });
}

absl::StatusOr<GroupReport> StageGroup::RunProgram(const Task& task) const {
  std::vector<ProgramRun::RunStage> here;
  std::vector<Device> devices;
  for (size_t i = 0; i < stages_.size(); ++i) {
    nn::Module& module = task.order.replay == Replay::kPasses
                             ? stages_[i]->replayed()
                             : stages_[i]->module();
    devices.push_back(module.device());
    here.push_back({module, stages_[i]->spec(),
                    StageStreams::Current(devices.back()),
                    *task.progress->mail[i], stages_[i]->loss()});
  }
  std::optional<StepTrace> trace;
  if (IsTraced(task)) trace.emplace(devices);
  StepTrace* const times = trace.has_value() ? &*trace : nullptr;
  ProgramRun run(*task.plan, task.batch, here, times);
  return Complete(task, run, times);
}

absl::StatusOr<GroupReport> StageGroup::ReplayProgram(const Task& task) const {
  RecordedProgram& program = *task.recorded;
  RETURN_IF_ERROR(program.Put(task.batch));
  StepTrace* const times = IsTraced(task) ? &program.trace() : nullptr;
  if (times != nullptr) times->Begin();
  return Complete(task, program, times);
}

std::string StageGroup::RecordProgram(const Task& task) {
  std::shared_ptr<RecordedProgram> made;
  const absl::Status status = CatchErrors([&] {
    std::vector<RecordedProgram::RecordedStage> here;
    for (const auto& stage : stages_) {
      here.push_back({stage->module(), stage->spec(), stage->loss(),
                      stage->WindowsOf(task.order.plan)});
    }
    const bool alone = numbers_.size() == 1;
    const bool linked = absl::c_any_of(
        here, [](const auto& stage) { return !stage.windows.empty(); });
    Require(
        alone || !linked, "recorded_program",
        "stages of one worker lie on several devices, and others elsewhere");
    made = std::make_shared<RecordedProgram>(
        task.plan, task.batch, here, task.order.gate,
        alone ? numbers_.front() : nullptr);
  });
  std::string why(status.message());
  if (!status.ok()) {
    for (const auto& stage : stages_) stage->SayNoWindow(why);
    return why.empty() ? status.ToString() : why;
  }
  MutexLock lock(mutex_);
  if (const auto found = plans_.find(task.order.plan); found != plans_.end())
    found->second.recorded = std::move(made);
  return "";
}

bool StageGroup::IsTraced(const Task& task) {
  return task.order.timed || task.call.agent().tracer()->on();
}

void StageGroup::Report(const Task& task, const StepTrace& trace, double waited,
                        GroupReport& report) {
  if (task.order.timed) {
    report.times = TimesOf(trace.Spans());
    report.times->until_end += waited;
  }
  rpc::Tracer& tracer = *task.call.agent().tracer();
  if (!tracer.on()) return;
  for (rpc::TraceEvent& event : trace.Log().events)
    tracer.Add(std::move(event));
}

absl::Status StageGroup::BeginLinks(const Task& task) const {
  for (size_t i = 0; i < stages_.size(); ++i) {
    WindowMap windows;
    if (task.plan->training) {
      ASSIGN_OR_RETURN(
          windows, stages_[i]->WindowsOf(task.order.plan, task.order.windows));
    }
    task.progress->mail[i]->Begin(task.order.step, task.deadline,
                                  std::move(windows));
  }
  if (task.order.replay != Replay::kProgram) return absl::OkStatus();
  return CatchErrors([&] {
    for (const auto& number : numbers_)
      number->Begin(task.order.step, CurrentStream(number->device()));
  });
}

void StageGroup::DrainLinks(const Task& task) {
  for (const auto& links : task.progress->mail) links->Drain();
  if (task.order.replay != Replay::kProgram) return;
  for (const auto& number : task.progress->numbers)
    CurrentStream(number->device()).Synchronize();
}

std::vector<MadeWindow> StageGroup::MakeWindows(const Task& task) const {
  std::vector<MadeWindow> made;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        task.deadline - StepClock::now());
    for (MadeWindow& window : stages_[i]->MakeWindows(
             *task.plan, task.order.make_windows,
             task.progress->mail[i]->passed(),
             std::clamp<std::chrono::milliseconds>(
                 left, std::chrono::milliseconds(1), kMakeWindows)))
      made.push_back(std::move(window));
  }
  return made;
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
  if (report.ok()) {
    progress.ran.Set(0.0);
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
