// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/program_run.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// For error messages.
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
  for (const Instruction& step : plan_.program) {
    if (step.op == StageOp::kBackward || step.op == StageOp::kWeightGrad)
      stages_.at(step.stage).last = &step;
  }
}

absl::Status ProgramRun::Run() {
  RETURN_IF_ERROR(CheckBatch());
  return CatchErrors([&]() -> absl::Status {
    for (const auto& [index, stage] : stages_) stage.compute.streams().Fork();
    for (const Instruction& step : plan_.program) {
      RETURN_IF_ERROR(Do(step));
      const Entry& at = stages_.at(step.stage);
      if (at.replicas != nullptr && at.last == &step)
        at.replicas->Begin(gradients_);
    }
    for (const auto& [index, stage] : stages_) stage.compute.streams().Join();
    for (auto& [index, stage] : stages_) stage.compute.MoveStatistics();
    for (const auto& [index, stage] : stages_)
      if (stage.replicas != nullptr) RETURN_IF_ERROR(AwaitMeans(stage));
    return absl::OkStatus();
  });
}

absl::Status ProgramRun::CheckBatch() {
  for (auto& entry : stages_) {
    Entry& at = entry.second;
    const StageSpec& spec = at.compute.spec();
    if (absl::c_linear_search(at.compute.wiring().sources(), kBatch)) {
      RETURN_IF_ERROR(spec.Explain(CatchErrors([&] {
        at.of_batch = StageWiring(kBatch, spec.count, spec.routes)
                          .OutputsTo(spec.index, batch_.inputs.size());
      })));
    }
    for (size_t i : at.of_batch) {
      RETURN_IF_ERROR(
          spec.Explain(CheckRows(batch_.inputs[i], plan_.rows, "inputs")));
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

StageReport ProgramRun::Report() const {
  return last() == nullptr ? StageReport() : last()->Report();
}

void ProgramRun::Undo() const {
  for (const auto& [index, stage] : stages_) stage.compute.Undo();
}

void ProgramRun::UndoIf(
    const std::function<Tensor(Device)>& condition_on) const {
  for (const auto& [index, stage] : stages_)
    stage.compute.UndoIf(condition_on(stage.compute.device()));
}

absl::Status ProgramRun::Do(const Instruction& step) {
  Entry& at = stages_.at(step.stage);
  RETURN_IF_ERROR(at.links.ended());
  const absl::Status status = CatchErrors([&]() -> absl::Status {
    if (step.op == StageOp::kForward) {
      ASSIGN_OR_RETURN(OutputsOfStages inputs, ReceiveInputs(step, at));
      Forward(step, at, std::move(inputs));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(Parcels received, Receive(step, at));
    switch (step.op) {
      case StageOp::kForward:
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

// The time begins when the stream has done its earlier work. A GPU's stream
// waits itself for windows; for mail this thread does.
template <typename Take>
std::invoke_result_t<Take> ProgramRun::Timed(const Instruction& step,
                                             const Entry& at, int from,
                                             const Stream& stream,
                                             const Take& take) const {
  if (trace_ == nullptr || !at.links.MayWait(from)) return take();
  std::invoke_result_t<Take> taken = absl::UnknownError("it was not taken");
  trace_->Time({.name = absl::StrCat("await ", ToString(step)),
                .kind = StepTrace::Kind::kWait,
                .track = absl::StrCat("stage ", step.stage)},
               stream, [&] { taken = take(); });
  return taken;
}

absl::StatusOr<Parcels> ProgramRun::Receive(const Instruction& step,
                                            Entry& at) const {
  Parcels gradients;
  if (step.op == StageOp::kWeightGrad) return gradients;
  for (int target : at.compute.wiring().targets()) {
    const auto take = [&] {
      return at.links.TakeGradients(target, step.micro_batch);
    };
    ASSIGN_OR_RETURN(
        gradients[target],
        Timed(step, at, target, at.compute.streams().Backward(step.micro_batch),
              take));
  }
  return gradients;
}

absl::StatusOr<OutputsOfStages> ProgramRun::ReceiveInputs(
    const Instruction& step, Entry& at) const {
  const int micro_batch = step.micro_batch;
  OutputsOfStages inputs;
  for (int source : at.compute.wiring().sources()) {
    Outputs& parcel = inputs[source];
    if (source == kBatch) {
      for (size_t i : at.of_batch)
        parcel.values.push_back(RowsOf(batch_.inputs[i], micro_batch));
      continue;
    }
    const auto take = [&] { return at.links.TakeInputs(source, micro_batch); };
    ASSIGN_OR_RETURN(parcel,
                     Timed(step, at, source,
                           at.compute.streams().Forward(micro_batch), take));
  }
  return inputs;
}

void ProgramRun::Forward(const Instruction& step, Entry& at,
                         OutputsOfStages inputs) {
  const int m = step.micro_batch;
  const StageCompute& compute = at.compute;
  const StreamScope scope(compute.streams().Forward(m));
  Tensor targets;
  OutputsOfStages outputs;
  if (compute.spec().is_last() && plan_.loss != Loss::kNone)
    targets = RowsOf(batch_.targets, m);
  Values needed;
  for (const auto& [source, parcel] : inputs)
    needed.insert(needed.end(), parcel.values.begin(), parcel.values.end());
  OnDevice(step, needed, [&] {
    outputs = at.compute.Forward(m, std::move(inputs), targets);
  });
  for (const auto& [target, parcel] : outputs)
    at.links.SendOutputs(target, m, parcel);
  if (plan_.training) return;
  for (int source : compute.wiring().sources()) {
    if (source != kBatch) at.links.SendGradients(source, m, {});
  }
}

void ProgramRun::Backward(const Instruction& step, Entry& at,
                          Parcels gradients) {
  const int m = step.micro_batch;
  const Stream& stream = at.compute.streams().Backward(m);
  // A forward enqueued later may run concurrently with this, but not before it.
  at.compute.streams().Forward(m).WaitFor(stream);
  const StreamScope scope(stream);
  Parcels back;
  Values needed;
  for (const auto& [target, parcel] : gradients)
    needed.insert(needed.end(), parcel.begin(), parcel.end());
  OnDevice(step, needed, [&] {
    back = at.compute.Backward(step.op, m, std::move(gradients),
                               batch_.loss_scale);
  });
  // Send first, because the previous stage waits for it.
  for (auto parcel = back.rbegin(); parcel != back.rend(); ++parcel)
    at.links.SendGradients(parcel->first, m, std::move(parcel->second));
}

void ProgramRun::WeightGrad(const Instruction& step, Entry& at) {
  const Stream& stream = at.compute.streams().Backward(step.micro_batch);
  const Stream beside = Stream::Beside(stream);
  beside.WaitFor(stream);
  const StreamScope scope(beside);
  OnDevice(step, {}, [&] { at.compute.WeightGrad(step.micro_batch); });
}

// The host waits, so on a GPU the time begins with the end of the backward and
// ends with the last reduction.
absl::Status ProgramRun::AwaitMeans(const Entry& at) {
  absl::Status status;
  const auto finish = [&] { status = at.replicas->Finish(gradients_); };
  const StageSpec& spec = at.compute.spec();
  if (trace_ == nullptr) {
    finish();
  } else {
    trace_->Time({.name = "await reductions",
                  .kind = StepTrace::Kind::kReduce,
                  .track = absl::StrCat("stage ", spec.index)},
                 CurrentStream(at.compute.device()), finish);
  }
  return spec.Explain(Annotate(status, "replicas"));
}

// The time begins when the stream has reached the work and `needed`, which may
// come from another device, is there.
template <typename Work>
void ProgramRun::OnDevice(const Instruction& step, const Values& needed,
                          const Work& work) {
  if (trace_ == nullptr) return work();
  const Stream stream = CurrentStream(stages_.at(step.stage).compute.device());
  for (const Tensor& value : needed) {
    if (value.defined()) AwaitValue(value, stream);
  }
  trace_->Time({.name = ToString(step),
                .track = absl::StrCat("stage ", step.stage),
                .instruction = step},
               stream, work);
}

}  // namespace baton::dist
