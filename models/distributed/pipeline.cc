// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/ops/indexing.h"

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

}  // namespace

void RegisterPipeline(rpc::Registry& registry) { registry.Add<Stage>(); }

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Make(
    rpc::Agent& agent, const PipelineOptions& options,
    const std::vector<StageModule>& modules) {
  RETURN_IF_ERROR(CheckOptions(options, modules.size()));
  // Backwards, since each stage knows the one behind it.
  std::vector<RRef<Stage>> stages(modules.size());
  std::optional<RRef<Stage>> next;
  StageSpec spec;
  spec.count = static_cast<int32_t>(modules.size());
  spec.checkpoint = options.checkpoint;
  spec.compute_threads = options.compute_threads;
  for (size_t i = modules.size(); i-- > 0;) {
    spec.index = static_cast<int32_t>(i);
    stages[i] = modules[i].MakeStage(agent, spec, next);
    next = stages[i];
  }
  for (const RRef<Stage>& stage : stages) {
    // The call ends by the agent's own time limit.
    RETURN_IF_ERROR(stage.Ready().Await(kNoLimit));
  }
  PipelineOptions kept = options;
  kept.step_timeout =
      std::min<std::chrono::milliseconds>(kept.step_timeout, kLongestStep);
  return std::unique_ptr<Pipeline>(new Pipeline(kept, std::move(stages)));
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

absl::StatusOr<Pipeline::StepResult> Pipeline::Step(const Context& ctx,
                                                    const Tensor& inputs,
                                                    const Tensor& targets) {
  if (!targets.defined()) {
    return absl::InvalidArgumentError("a training step needs targets");
  }
  ASSIGN_OR_RETURN(StepPlan plan, PlanFor(inputs, targets, true));
  ASSIGN_OR_RETURN(StageReport report,
                   RunStep(plan, ctx.call_scope(),
                           TrainPrograms(options_.schedule, num_stages(),
                                         plan.micro_batches),
                           inputs, targets));
  return StepResult{report.loss, static_cast<double>(report.correct) /
                                     static_cast<double>(plan.rows)};
}

absl::StatusOr<Pipeline::EvalResult> Pipeline::Evaluate(const Tensor& inputs,
                                                        const Tensor& targets) {
  ASSIGN_OR_RETURN(StepPlan plan, PlanFor(inputs, targets, false));
  ASSIGN_OR_RETURN(
      StageReport report,
      RunStep(plan, nullptr, EvalPrograms(num_stages(), plan.micro_batches),
              inputs, targets));
  EvalResult result;
  result.loss = report.loss;
  result.accuracy =
      static_cast<double>(report.correct) / static_cast<double>(plan.rows);
  RETURN_IF_ERROR(
      CatchErrors([&] { result.outputs = ops::Cat(report.outputs, 0); }));
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

absl::StatusOr<StageReport> Pipeline::RunStep(
    const StepPlan& plan, std::shared_ptr<rpc::CallScope> scope,
    const std::vector<std::vector<Instruction>>& programs, const Tensor& inputs,
    const Tensor& targets) {
  std::vector<Future<StageReport>> runs;
  std::vector<Future<bool>> parts, ends;
  for (size_t i = 0; i < stages_.size(); ++i) {
    StepPlan part = plan;
    part.program = programs[i];
    runs.push_back(scope == nullptr
                       ? stages_[i].Async<&Stage::Run>(Calls(), part)
                       : stages_[i].Async<&Stage::Run>(Calls(), scope, part));
    parts.push_back(runs.back().Then([](const StageReport&) { return true; }));
    Promise<bool> end;
    runs.back().OnReady(
        [end](const absl::StatusOr<StageReport>&) { end.Set(true); });
    ends.push_back(end.future());
  }
  for (auto& fed : Feed(plan, inputs, targets)) parts.push_back(std::move(fed));
  absl::Status status =
      WaitAll(parts).Await(options_.step_timeout + 2 * kGrace).status();
  if (status.ok()) return runs.back().Await();
  AbortStep(plan.step, status);
  // The caller may change or free what the stages use only once they are done.
  WaitAll(ends).Await(kGiveUp).status().IgnoreError();
  return status;
}

void Pipeline::AbortStep(uint64_t step, const absl::Status& why) {
  rpc::CallOptions options;
  options.timeout = kGiveUp;
  for (const RRef<Stage>& stage : stages_) {
    stage.Async<&Stage::Abort>(options, step, why)
        .OnReady([](const absl::Status&) {});
  }
}

}  // namespace baton::dist
