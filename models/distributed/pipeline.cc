// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/ops/indexing.h"
#include "models/distributed/micro_batches.h"

namespace baton::dist {
namespace {

// How long the stages may take to give up a step that failed somewhere.
constexpr std::chrono::milliseconds kGiveUp{5000};
// Beyond the step's own deadline, which brings the better message.
constexpr std::chrono::milliseconds kGrace{2000};

// Longer limits, which mean none, would overflow what is added to them.
constexpr std::chrono::hours kLongestStep{24 * 365};

absl::Status CheckOptions(const PipelineOptions& options, size_t modules) {
  if (modules == 0) {
    return absl::InvalidArgumentError("a pipeline needs at least one module");
  }
  if (options.split_size < 0 || options.step_timeout.count() <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pipeline cannot have split size ", options.split_size,
                     " and step timeout ", options.step_timeout.count(),
                     " ms; a split size of 0 means the whole batch"));
  }
  return absl::OkStatus();
}

// Workers count from 0 in the order in which the stages name them.
std::vector<int> WorkersOf(const std::vector<StageModule>& modules) {
  std::map<std::string, int> numbers;
  std::vector<int> workers;
  for (const StageModule& module : modules) {
    const int next = static_cast<int>(numbers.size());
    workers.push_back(
        numbers.try_emplace(module.owner().name, next).first->second);
  }
  return workers;
}

// Says before anything is made what the schedule cannot be.
absl::Status CheckChoice(const ScheduleChoice& choice,
                         const std::vector<int>& worker_of_stage) {
  Workload work;
  work.worker_of_stage = worker_of_stage;
  if (choice.given) work.micro_batches = choice.given->micro_batches();
  return MakeSchedule(choice, work).status();
}

// What runs the stages of each worker.
absl::StatusOr<std::vector<RRef<StageGroup>>> MakeGroups(
    rpc::Agent& agent, const std::vector<RRef<Stage>>& stages,
    const std::vector<int>& worker_of_stage, int compute_threads) {
  std::map<int, std::vector<RRef<Stage>>> of_worker;
  for (size_t i = 0; i < stages.size(); ++i)
    of_worker[worker_of_stage[i]].push_back(stages[i]);
  std::vector<Future<RRef<StageGroup>>> making;
  for (const auto& [worker, here] : of_worker) {
    making.push_back(rpc::Create<StageGroup>(agent, here.front().owner(), here,
                                             int32_t{compute_threads}));
  }
  return WaitAll(making).Await(kNoLimit);
}

// Steps by usual costs, before those of the last of them order the others.
constexpr int kUsualSteps = 2;

double BubbleOf(const std::vector<GroupReport>& reports) {
  double makespan = 0, busy = 0;
  for (const GroupReport& report : reports) {
    makespan = std::max(makespan, report.until_end_s);
    busy = std::accumulate(report.seconds.begin(), report.seconds.end(), busy);
  }
  return 1 - busy / (makespan * static_cast<double>(reports.size()));
}

}  // namespace

void RegisterPipeline(rpc::Registry& registry) {
  registry.Add<Stage>().Add<StageGroup>();
}

Pipeline::Pipeline(const PipelineOptions& options,
                   std::vector<RRef<Stage>> stages,
                   std::vector<RRef<StageGroup>> groups,
                   std::vector<int> worker_of_stage)
    : options_(options),
      stages_(std::move(stages)),
      groups_(std::move(groups)),
      worker_of_stage_(std::move(worker_of_stage)) {}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Make(
    rpc::Agent& agent, const PipelineOptions& options,
    const std::vector<StageModule>& modules) {
  RETURN_IF_ERROR(CheckOptions(options, modules.size()));
  std::vector<int> workers = WorkersOf(modules);
  RETURN_IF_ERROR(CheckChoice(options.schedule, workers));
  // Backwards, since each stage knows the one behind it.
  std::vector<RRef<Stage>> stages(modules.size());
  std::optional<RRef<Stage>> next;
  StageSpec spec;
  spec.count = static_cast<int32_t>(modules.size());
  spec.checkpoint = options.checkpoint;
  for (size_t i = modules.size(); i-- > 0;) {
    spec.index = static_cast<int32_t>(i);
    stages[i] = modules[i].MakeStage(agent, spec, next);
    next = stages[i];
  }
  for (const RRef<Stage>& stage : stages) {
    // The call ends by the agent's own time limit.
    RETURN_IF_ERROR(stage.Ready().Await(kNoLimit));
  }
  ASSIGN_OR_RETURN(auto groups,
                   MakeGroups(agent, stages, workers, options.compute_threads));
  PipelineOptions kept = options;
  kept.step_timeout =
      std::min<std::chrono::milliseconds>(kept.step_timeout, kLongestStep);
  return std::unique_ptr<Pipeline>(new Pipeline(
      kept, std::move(stages), std::move(groups), std::move(workers)));
}

rpc::CallOptions Pipeline::Calls() const {
  rpc::CallOptions options;
  options.timeout = options_.step_timeout + kGrace;
  return options;
}

absl::StatusOr<StepPlan> Pipeline::PlanFor(const Tensor& inputs,
                                           const Tensor& targets,
                                           bool training) {
  if (!inputs.defined() || inputs.rank() == 0 || inputs.dim(0) == 0) {
    return absl::InvalidArgumentError("a pipeline step needs at least one row");
  }
  if (targets.defined() &&
      (targets.rank() == 0 || targets.dim(0) != inputs.dim(0))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "inputs of shape ", inputs.shape().ToString(),
        " do not go with targets of shape ", targets.shape().ToString()));
  }
  StepPlan plan;
  plan.step = ++last_step_;
  plan.rows = inputs.dim(0);
  plan.split_size = options_.split_size > 0
                        ? std::min(options_.split_size, plan.rows)
                        : plan.rows;
  plan.micro_batches =
      static_cast<int32_t>((plan.rows + plan.split_size - 1) / plan.split_size);
  plan.training = training;
  plan.loss = targets.defined() ? options_.loss : Loss::kNone;
  plan.time_left = options_.step_timeout;
  return plan;
}

Workload Pipeline::WorkFor(const StepPlan& plan) const {
  Workload work;
  work.worker_of_stage = worker_of_stage_;
  work.micro_batches = plan.micro_batches;
  work.sizes = GroupSizes(SplitRows(plan.rows, plan.split_size));
  return work;
}

absl::StatusOr<Pipeline::Ordered*> Pipeline::OrderedFor(const StepPlan& plan) {
  const auto [at, is_new] = ordered_.try_emplace(plan.rows);
  Ordered& ordered = at->second;
  if (is_new) {
    ordered.work = WorkFor(plan);
    ordered.meter = CostMeter(stages_.size());
  } else if (options_.schedule.name == "auto" && ordered.steps == kUsualSteps) {
    ordered.work.costs = ordered.meter.Mean();
  } else if (!ordered.schedule.workers.empty()) {
    return &ordered;
  }
  ASSIGN_OR_RETURN(ordered.schedule,
                   MakeSchedule(options_.schedule, ordered.work));
  return &ordered;
}

void Pipeline::Learn(const std::vector<GroupReport>& reports,
                     Ordered& ordered) {
  last_ = &ordered;
  if (++ordered.steps < kUsualSteps) return;
  for (size_t worker = 0; worker < reports.size(); ++worker) {
    const Program& program = ordered.schedule.workers[worker];
    const std::vector<double>& seconds = reports[worker].seconds;
    for (size_t i = 0; i < std::min(program.size(), seconds.size()); ++i) {
      ordered.meter.Add(
          program[i], ordered.work.size_of(program[i].micro_batch), seconds[i]);
    }
  }
}

absl::StatusOr<Simulation> Pipeline::Predict() const {
  if (last_ == nullptr || last_->steps < kUsualSteps) {
    return absl::FailedPreconditionError(
        "a prediction needs the costs of two steps");
  }
  Workload work = last_->work;
  work.costs = last_->meter.Mean();
  return Simulate(last_->schedule, work);
}

void Pipeline::set_split_size(int64_t rows) {
  options_.split_size = rows;
  ordered_.clear();
  last_ = nullptr;
}

absl::StatusOr<Pipeline::StepResult> Pipeline::Step(const Context& ctx,
                                                    const Tensor& inputs,
                                                    const Tensor& targets) {
  if (!targets.defined()) {
    return absl::InvalidArgumentError("a training step needs targets");
  }
  ASSIGN_OR_RETURN(StepPlan plan, PlanFor(inputs, targets, true));
  ASSIGN_OR_RETURN(Ordered * ordered, OrderedFor(plan));
  ASSIGN_OR_RETURN(
      const std::vector<GroupReport> reports,
      RunStep(plan, ctx.call_scope(), ordered->schedule, inputs, targets));
  Learn(reports, *ordered);
  const StageReport& last =
      reports[static_cast<size_t>(worker_of_stage_.back())].last;
  return StepResult{
      last.loss,
      static_cast<double>(last.correct) / static_cast<double>(plan.rows),
      BubbleOf(reports)};
}

absl::StatusOr<Pipeline::EvalResult> Pipeline::Evaluate(const Tensor& inputs,
                                                        const Tensor& targets) {
  ASSIGN_OR_RETURN(StepPlan plan, PlanFor(inputs, targets, false));
  ASSIGN_OR_RETURN(const Schedule forwards, MakeForwards(WorkFor(plan)));
  ASSIGN_OR_RETURN(const std::vector<GroupReport> reports,
                   RunStep(plan, nullptr, forwards, inputs, targets));
  const StageReport& last =
      reports[static_cast<size_t>(worker_of_stage_.back())].last;
  EvalResult result;
  result.loss = last.loss;
  result.accuracy =
      static_cast<double>(last.correct) / static_cast<double>(plan.rows);
  RETURN_IF_ERROR(
      CatchErrors([&] { result.outputs = ops::Cat(last.outputs, 0); }));
  return result;
}

std::vector<Future<bool>> Pipeline::Feed(const StepPlan& plan,
                                         const Tensor& inputs,
                                         const Tensor& targets) {
  std::vector<Future<bool>> fed;
  // A stage without a loss may be done before they come.
  if (plan.loss != Loss::kNone) {
    fed.push_back(stages_.back()
                      .Async<&Stage::PutTargets>(Calls(), plan.step, targets)
                      .Then([] { return true; }));
  }
  int32_t micro_batch = 0;
  for (const RowRange& rows : SplitRows(plan.rows, plan.split_size)) {
    fed.push_back(
        stages_.front()
            .Async<&Stage::PutInput>(Calls(), plan.step, micro_batch++,
                                     inputs.Slice(0, rows.begin, rows.end))
            .Then([](const Tensor&) { return true; }));
  }
  return fed;
}

absl::StatusOr<std::vector<GroupReport>> Pipeline::RunStep(
    const StepPlan& plan, std::shared_ptr<rpc::CallScope> scope,
    const Schedule& schedule, const Tensor& inputs, const Tensor& targets) {
  std::vector<Future<GroupReport>> runs;
  std::vector<Future<bool>> parts, ends;
  for (size_t i = 0; i < groups_.size(); ++i) {
    StepPlan part = plan;
    part.program = schedule.workers[i];
    const RRef<StageGroup>& group = groups_[i];
    runs.push_back(scope == nullptr
                       ? group.Async<&StageGroup::Run>(Calls(), part)
                       : group.Async<&StageGroup::Run>(Calls(), scope, part));
    parts.push_back(runs.back().Then([](const GroupReport&) { return true; }));
    Promise<bool> end;
    runs.back().OnReady(
        [end](const absl::StatusOr<GroupReport>&) { end.Set(true); });
    ends.push_back(end.future());
  }
  for (auto& fed : Feed(plan, inputs, targets)) parts.push_back(std::move(fed));
  absl::Status status =
      WaitAll(parts).Await(options_.step_timeout + 2 * kGrace).status();
  if (status.ok()) return WaitAll(runs).Await();
  AbortStep(plan.step, status);
  // The caller may change or free what the stages use only once they are done.
  WaitAll(ends).Await(kGiveUp).status().IgnoreError();
  return status;
}

void Pipeline::AbortStep(uint64_t step, const absl::Status& why) {
  rpc::CallOptions options;
  options.timeout = kGiveUp;
  for (const RRef<StageGroup>& group : groups_) {
    group.Async<&StageGroup::Abort>(options, step, why)
        .OnReady([](const absl::Status&) {});
  }
}

}  // namespace baton::dist
