// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/program_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "core/storage.h"

namespace baton::dist {
namespace {

// For people.
const char* WorkOf(StageOp op) {
  return op == StageOp::kForward      ? "forward"
         : op == StageOp::kWeightGrad ? "gradients of weights"
                                      : "backward";
}

absl::Status CheckRows(const Tensor& x, int64_t rows, const char* what) {
  if (x.defined() && x.rank() > 0 && x.dim(0) == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", what, " of ", rows, " rows, got shape ",
                   x.defined() ? x.shape().ToString() : "(undefined)"));
}

}  // namespace

ProgramRun::ProgramRun(const StepPlan& plan, const Batch& batch,
                       const std::vector<RunStage>& stages, StepTrace* trace)
    : plan_(plan),
      batch_(batch),
      rows_(SplitRows(plan.rows, plan.micro_batches)),
      trace_(trace) {
  for (const RunStage& stage : stages)
    stages_.try_emplace(stage.spec.index, stage, plan_, gradients_);
}

absl::Status ProgramRun::Run() {
  RETURN_IF_ERROR(CheckBatch());
  return CatchErrors([&]() -> absl::Status {
    for (const auto& [index, stage] : stages_) stage.compute.streams().Fork();
    for (const Instruction& step : plan_.program) RETURN_IF_ERROR(Do(step));
    for (const auto& [index, stage] : stages_) stage.compute.streams().Join();
    for (auto& [index, stage] : stages_) stage.compute.MoveStatistics();
    return absl::OkStatus();
  });
}

absl::Status ProgramRun::CheckBatch() const {
  for (const auto& [index, stage] : stages_) {
    const StageSpec& spec = stage.compute.spec();
    if (spec.is_first()) {
      RETURN_IF_ERROR(
          spec.Explain(CheckRows(batch_.inputs, plan_.rows, "inputs")));
    }
    if (spec.is_last() && plan_.loss != Loss::kNone) {
      RETURN_IF_ERROR(
          spec.Explain(CheckRows(batch_.targets, plan_.rows, "targets")));
    }
  }
  return absl::OkStatus();
}

const StageCompute* ProgramRun::last() const {
  const StageCompute& highest = stages_.rbegin()->second.compute;
  return highest.spec().is_last() ? &highest : nullptr;
}

void ProgramRun::Undo() const {
  for (const auto& [index, stage] : stages_) stage.compute.Undo();
}

absl::Status ProgramRun::Do(const Instruction& step) {
  Entry& at = stages_.at(step.stage);
  RETURN_IF_ERROR(at.links.ended());
  const absl::Status status = CatchErrors([&]() -> absl::Status {
    ASSIGN_OR_RETURN(Tensor received, Receive(step, at));
    switch (step.op) {
      case StageOp::kForward:
        Forward(step, at, std::move(received));
        break;
      case StageOp::kInputGrad:
        Backward(step, at, std::move(received));
        break;
      case StageOp::kBackward:
        Backward(step, at, std::move(received));
        WeightGrad(step, at);
        break;
      case StageOp::kWeightGrad:
        WeightGrad(step, at);
        break;
    }
    return absl::OkStatus();
  });
  return at.compute.spec().Explain(Annotate(
      status,
      absl::StrCat(WorkOf(step.op), " of micro-batch ", step.micro_batch)));
}

Tensor ProgramRun::RowsOf(const Tensor& x, int micro_batch) const {
  const RowRange& rows = rows_[static_cast<size_t>(micro_batch)];
  return rows.size() == x.dim(0) ? x : x.Slice(0, rows.begin, rows.end);
}

absl::StatusOr<Tensor> ProgramRun::Receive(const Instruction& step,
                                           Entry& at) const {
  const int m = step.micro_batch;
  const StageSpec& spec = at.compute.spec();
  if (step.op == StageOp::kWeightGrad) return Tensor();
  if (step.op != StageOp::kForward)
    return spec.is_last() ? batch_.loss_scale : at.links.TakeGradient(m);
  if (spec.is_first()) return RowsOf(batch_.inputs, m);
  ASSIGN_OR_RETURN(Tensor input, at.links.TakeInput(m));
  RETURN_IF_ERROR(
      CheckRows(input, rows_[static_cast<size_t>(m)].size(), "an input"));
  return input;
}

void ProgramRun::Forward(const Instruction& step, Entry& at, Tensor input) {
  const int m = step.micro_batch;
  const bool is_last = at.compute.spec().is_last();
  const StreamScope scope(at.compute.streams().Forward(m));
  Tensor targets, output;
  if (is_last && plan_.loss != Loss::kNone) targets = RowsOf(batch_.targets, m);
  OnDevice(step, input,
           [&] { output = at.compute.Forward(m, input, targets); });
  if (!is_last) at.links.SendOutput(m, output);
  if (!plan_.training) at.links.SendGradient(m, Tensor());
}

void ProgramRun::Backward(const Instruction& step, Entry& at, Tensor gradient) {
  const int m = step.micro_batch;
  const Stream& stream = at.compute.streams().Backward(m);
  // A forward given after this may run beside it, but not before.
  at.compute.streams().Forward(m).WaitFor(stream);
  const StreamScope scope(stream);
  Tensor of_input;
  OnDevice(step, gradient,
           [&] { of_input = at.compute.Backward(step.op, m, gradient); });
  // The stage before waits for it: sent before anything else is given.
  at.links.SendGradient(m, std::move(of_input));
}

void ProgramRun::WeightGrad(const Instruction& step, Entry& at) {
  const Stream& stream = at.compute.streams().Backward(step.micro_batch);
  const Stream beside = Stream::Beside(stream);
  beside.WaitFor(stream);
  const StreamScope scope(beside);
  OnDevice(step, Tensor(), [&] { at.compute.WeightGrad(step.micro_batch); });
}

// Timed from when the stream has come there and `needed`, which may have come
// from another device, is there.
template <typename Work>
void ProgramRun::OnDevice(const Instruction& step, const Tensor& needed,
                          const Work& work) {
  if (trace_ == nullptr) return work();
  const Stream stream = CurrentStream(stages_.at(step.stage).compute.device());
  if (needed.defined() && needed.storage()->use())
    needed.storage()->use()->Read(stream);
  trace_->Time(ToString(step), StepTrace::Kind::kCompute,
               absl::StrCat("stage ", step.stage), stream, work, step);
}

}  // namespace baton::dist
