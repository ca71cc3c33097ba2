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
#include "core/ops/indexing.h"
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

StageRun::StageRun(const Stage& stage, StepWork& work,
                   std::shared_ptr<StepState> mail)
    : stage_(stage),
      module_(stage.module()),
      work_(work),
      plan_(work.plan),
      mail_(std::move(mail)),
      track_(absl::StrCat("stage ", stage.spec().index)) {
  if (plan_.steps) {
    drawn_from_ = nn::GeneratorStates(module_);
    for (const auto& [name, buffer] : module_.NamedBuffers())
      buffers_.emplace_back(buffer, buffer.Clone());
  }
  if (!plan_.training) evaluating_.emplace(module_);
}

absl::Status StageRun::Run(const Instruction& step) {
  RETURN_IF_ERROR(mail_->ended());
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
  return std::chrono::duration<double>(mail_->waited()).count();
}

RowRange StageRun::RowsOf(int micro_batch) const {
  const int64_t begin = micro_batch * plan_.split_size;
  return {begin, std::min(plan_.rows, begin + plan_.split_size)};
}

void StageRun::Undo() const {
  drawn_from_.Restore();
  for (const auto& [buffer, kept] : buffers_) buffer.CopyFrom(kept);
}

absl::StatusOr<Tensor> StageRun::InputOf(int micro_batch) {
  const RowRange rows = RowsOf(micro_batch);
  if (stage_.is_first())
    return work_.order.inputs.Slice(0, rows.begin, rows.end);
  ASSIGN_OR_RETURN(Tensor input, mail_->TakeInput(micro_batch, work_.deadline));
  if (!input.defined() || input.rank() == 0 || input.dim(0) != rows.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected an input of ", rows.size(), " rows, got shape ",
        input.defined() ? input.shape().ToString() : "(undefined)"));
  }
  return input;
}

absl::Status StageRun::Forward(int micro_batch) {
  ASSIGN_OR_RETURN(Tensor received, InputOf(micro_batch));
  const rpc::TraceSpan span(*work_.tracer, track_, [&] {
    return absl::StrCat("forward ", micro_batch);
  });
  const bool wants_grad = plan_.training && !stage_.is_first();
  Variable input(std::move(received), wants_grad);
  nn::GeneratorStates drawn_from;
  if (recomputes()) drawn_from = nn::GeneratorStates(module_);
  Variable result;
  {
    std::optional<NoGrad> no_grad;
    if (!plan_.training || recomputes()) no_grad.emplace();
    result = module_.Forward(module_.Placed(input));
    const Tensor output = result.tensor();
    if (!is_last()) {
      SendOn(micro_batch, output);
    } else {
      if (!plan_.training) outputs_.push_back(output);
      if (plan_.loss != Loss::kNone) {
        result = WeightedLoss(result, RowsOf(micro_batch));
        losses_.push_back(result.tensor().Reshape({1}));
        if (output.rank() == 2) predicted_.push_back(ops::ArgMax(output, 1));
      }
    }
  }
  if (!plan_.training) {
    mail_->Answer(micro_batch, Tensor());
    return absl::OkStatus();
  }
  if (recomputes()) result = Variable();
  saved_[micro_batch] = {std::move(input), std::move(result),
                         std::move(drawn_from)};
  return absl::OkStatus();
}

StageReport StageRun::Report() const {
  const auto joined = [](const std::vector<Tensor>& parts) {
    return parts.empty() ? Tensor() : ops::Cat(parts, 0);
  };
  return {joined(losses_), joined(predicted_), outputs_};
}

void StageRun::SendOn(int micro_batch, const Tensor& output) {
  const auto time_left = std::chrono::ceil<std::chrono::milliseconds>(
      work_.deadline - std::chrono::steady_clock::now());
  rpc::CallOptions options;
  options.timeout = std::max(std::chrono::milliseconds(1), time_left);
  stage_.next()
      ->Async<&Stage::PutInput>(options, work_.order.step, micro_batch, output)
      .OnReady([mail = mail_, micro_batch,
                spec = stage_.spec()](const absl::StatusOr<Tensor>& gradient) {
        if (gradient.ok()) {
          mail->PutGradient(micro_batch, *gradient);
          return;
        }
        mail->Fail(Annotate(
            gradient.status(),
            absl::StrCat("stage ", spec.index, " of ", spec.count,
                         ": micro-batch ", micro_batch, " at the next stage")));
      });
}

// Sums to the mean over the batch whatever the sizes of the micro-batches.
Variable StageRun::WeightedLoss(const Variable& output,
                                const RowRange& rows) const {
  const Tensor& targets = work_.order.targets;
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

Variable StageRun::Recompute(int micro_batch, const Saved& saved) {
  nn::RerunScope rerun(module_, saved.drawn_from);
  Variable result = module_.Forward(module_.Placed(saved.input));
  if (is_last()) result = WeightedLoss(result, RowsOf(micro_batch));
  return result;
}

absl::Status StageRun::Backward(int micro_batch, bool leave_weights) {
  Tensor gradient;  // of the last stage's loss: one
  if (!is_last()) {
    ASSIGN_OR_RETURN(gradient,
                     mail_->TakeGradient(micro_batch, work_.deadline));
  }
  const rpc::TraceSpan span(*work_.tracer, track_, [&] {
    return absl::StrCat("backward ", micro_batch);
  });
  Saved saved = std::move(saved_.extract(micro_batch).mapped());
  // A stage that does not use its input gives its predecessor no gradient.
  const bool flows = is_last() || gradient.defined();
  if (flows && recomputes()) {
    saved.result = Recompute(micro_batch, saved);
  }
  // The next stage may compute on another device.
  if (gradient.defined())
    gradient = gradient.To(saved.result.tensor().device());
  Tensor input_gradient;
  LeafGradients gradients;
  if (flows && saved.result.requires_grad()) {
    autograd::GraphTask::Options pass;
    pass.sink = [&](const Variable& leaf, const Tensor& grad) {
      if (leaf.id() == saved.input.id()) {
        input_gradient = grad;
      } else {
        gradients.emplace_back(leaf, grad);
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
  mail_->Answer(micro_batch, std::move(input_gradient));
  AddUp(std::move(gradients));
  return absl::OkStatus();
}

void StageRun::AddUp(LeafGradients gradients) {
  work_.gradients.Add(std::move(gradients), /*last=*/plan_.micro_batches == 1);
}

void StageRun::Weights(int micro_batch) {
  const rpc::TraceSpan span(*work_.tracer, track_, [&] {
    return absl::StrCat("weights ", micro_batch);
  });
  LeafGradients gradients;
  for (auto& [leaf, gradient] : std::exchange(late_[micro_batch], {})) {
    gradients.emplace_back(leaf, gradient());
    gradient = nullptr;
  }
  AddUp(std::move(gradients));
}

}  // namespace baton::dist
