// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/engine.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/cast.h"
#include "core/ops/reduce.h"
#include "models/nn/loss.h"

namespace baton::dist {
namespace {

// For people.
const char* WorkOf(StageOp op) {
  return op == StageOp::kForward      ? "forward"
         : op == StageOp::kWeightGrad ? "gradients of weights"
                                      : "backward";
}

}  // namespace

StageRun::StageRun(const Stage& stage, const StepPlan& plan,
                   StepState::Deadline deadline,
                   std::shared_ptr<ContextState> context,
                   std::shared_ptr<StepState> state,
                   std::shared_ptr<rpc::Tracer> tracer)
    : stage_(stage),
      module_(stage.module()),
      plan_(plan),
      deadline_(deadline),
      context_(std::move(context)),
      state_(std::move(state)),
      tracer_(std::move(tracer)),
      track_(absl::StrCat("stage ", stage.spec().index)) {
  if (!plan.training) evaluating_.emplace(module_);
}

absl::Status StageRun::Run(const Instruction& step) {
  const int m = step.micro_batch;
  absl::Status status = CatchErrors([&] {
    switch (step.op) {
      case StageOp::kForward:
        return Forward(m);
      case StageOp::kInputGrad:
        return Backward(m, /*leave_weights=*/true);
      case StageOp::kWeightGrad:
        Weights(m);
        return absl::OkStatus();
      case StageOp::kBackward:
        return Backward(m, /*leave_weights=*/false);
    }
    return absl::InvalidArgumentError("no such instruction");
  });
  return stage_.Explain(
      Annotate(status, absl::StrCat(WorkOf(step.op), " of micro-batch ", m)));
}

double StageRun::waited_s() const {
  return std::chrono::duration<double>(state_->waited()).count();
}

RowRange StageRun::RowsOf(int micro_batch) const {
  const int64_t begin = micro_batch * plan_.split_size;
  return {begin, std::min(plan_.rows, begin + plan_.split_size)};
}

absl::Status StageRun::Forward(int micro_batch) {
  ASSIGN_OR_RETURN(Tensor received, state_->TakeInput(micro_batch, deadline_));
  const rpc::TraceSpan span(
      *tracer_, track_, [&] { return absl::StrCat("forward ", micro_batch); });
  const RowRange rows = RowsOf(micro_batch);
  if (!received.defined() || received.rank() == 0 ||
      received.dim(0) != rows.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected an input of ", rows.size(), " rows, got shape ",
        received.defined() ? received.shape().ToString() : "(undefined)"));
  }
  const bool wants_grad = plan_.training && stage_.spec().index > 0;
  Variable input(std::move(received), wants_grad);
  nn::GeneratorStates drawn_from;
  if (recomputes()) drawn_from = nn::GeneratorStates(module_);
  Variable result;
  {
    std::optional<NoGrad> no_grad;
    if (!plan_.training || recomputes()) no_grad.emplace();
    result = module_.Forward(module_.Placed(input));
    if (!is_last()) {
      SendOn(micro_batch, result.tensor());
    } else if (plan_.loss != Loss::kNone) {
      ASSIGN_OR_RETURN(Tensor targets, state_->Targets(deadline_));
      const Tensor output = result.tensor();
      result = WeightedLoss(result, targets, rows);
      Score(output, targets.Slice(0, rows.begin, rows.end), result);
      if (!plan_.training) report_.outputs.push_back(output);
    } else {
      report_.outputs.push_back(result.tensor());
    }
  }
  if (!plan_.training) {
    state_->Answer(micro_batch, Tensor());
    return absl::OkStatus();
  }
  if (recomputes()) result = Variable();
  saved_[micro_batch] = {std::move(input), std::move(result),
                         std::move(drawn_from)};
  return absl::OkStatus();
}

void StageRun::SendOn(int micro_batch, const Tensor& output) {
  const auto time_left = std::chrono::ceil<std::chrono::milliseconds>(
      deadline_ - std::chrono::steady_clock::now());
  rpc::CallOptions options;
  options.timeout = std::max(std::chrono::milliseconds(1), time_left);
  stage_.next()
      ->Async<&Stage::PutInput>(options, plan_.step, micro_batch, output)
      .OnReady([state = state_, micro_batch,
                spec = stage_.spec()](const absl::StatusOr<Tensor>& gradient) {
        if (gradient.ok()) {
          state->PutGradient(micro_batch, *gradient);
          return;
        }
        state->Fail(Annotate(
            gradient.status(),
            absl::StrCat("stage ", spec.index, " of ", spec.count,
                         ": micro-batch ", micro_batch, " at the next stage")));
      });
}

// Sums to the mean over the batch whatever the sizes of the micro-batches.
Variable StageRun::WeightedLoss(const Variable& output, const Tensor& targets,
                                const RowRange& rows) const {
  Require(targets.rank() > 0 && targets.dim(0) == plan_.rows, "loss",
          "expected targets of ", plan_.rows, " rows, got shape ",
          targets.shape().ToString());
  const Tensor part =
      targets.Slice(0, rows.begin, rows.end).To(output.tensor().device());
  const Variable whole =
      IsHalf(output.dtype()) ? autograd::Cast(output, DType::kF32) : output;
  Variable loss = plan_.loss == Loss::kCrossEntropy
                      ? nn::CrossEntropy(whole, part)
                      : nn::MseLoss(whole, part);
  return autograd::MulScalar(
      loss, static_cast<double>(rows.size()) / static_cast<double>(plan_.rows));
}

void StageRun::Score(const Tensor& output, const Tensor& targets,
                     const Variable& weighted) {
  report_.loss += weighted.tensor().Item();
  if (output.rank() != 2) return;
  const bool labels = plan_.loss == Loss::kCrossEntropy;
  report_.correct +=
      nn::CountCorrect(output, labels ? targets : ops::ArgMax(targets, 1));
}

Variable StageRun::Recompute(int micro_batch, const Saved& saved,
                             const Tensor& targets) {
  nn::RerunScope rerun(module_, saved.drawn_from);
  Variable result = module_.Forward(module_.Placed(saved.input));
  if (is_last()) result = WeightedLoss(result, targets, RowsOf(micro_batch));
  return result;
}

absl::Status StageRun::Backward(int micro_batch, bool leave_weights) {
  Tensor gradient;  // of the last stage's loss: one
  Tensor targets;
  if (!is_last()) {
    ASSIGN_OR_RETURN(gradient, state_->TakeGradient(micro_batch, deadline_));
  } else if (recomputes()) {
    ASSIGN_OR_RETURN(targets, state_->Targets(deadline_));
  }
  const rpc::TraceSpan span(
      *tracer_, track_, [&] { return absl::StrCat("backward ", micro_batch); });
  Saved saved = std::move(saved_.extract(micro_batch).mapped());
  // A stage that does not use its input gives its predecessor no gradient.
  const bool flows = is_last() || gradient.defined();
  if (flows && recomputes()) {
    saved.result = Recompute(micro_batch, saved, targets);
  }
  // The next stage may compute on another device.
  if (gradient.defined())
    gradient = gradient.To(saved.result.tensor().device());
  Tensor input_gradient;
  if (flows && saved.result.requires_grad()) {
    autograd::GraphTask::Options pass;
    pass.sink = [&](const Variable& leaf, const Tensor& grad) {
      if (leaf.id() == saved.input.id()) {
        input_gradient = grad;
      } else {
        context_->Accumulate(leaf, grad);
      }
    };
    if (leave_weights) {
      pass.postpone = [&](const Variable& leaf) {
        return leaf.id() != saved.input.id();
      };
      pass.later = [&](const Variable& leaf, autograd::LateGradient late) {
        late_[micro_batch].emplace_back(leaf, std::move(late));
      };
    }
    autograd::Backward({saved.result}, {gradient}, std::move(pass));
  }
  state_->Answer(micro_batch, std::move(input_gradient));
  return absl::OkStatus();
}

void StageRun::Weights(int micro_batch) {
  const rpc::TraceSpan span(
      *tracer_, track_, [&] { return absl::StrCat("weights ", micro_batch); });
  LateGradients late = std::exchange(late_[micro_batch], {});
  for (auto& [leaf, gradient] : late) {
    context_->Accumulate(leaf, gradient());
    gradient = nullptr;
  }
}

}  // namespace baton::dist
