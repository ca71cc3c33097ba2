// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/recorded_program.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

constexpr char kOp[] = "recorded_program";

Tensor OnGpu(const Tensor& like, Device device) {
  return Tensor::Empty(like.shape(), {.dtype = like.dtype(),
                                      .device = device,
                                      .format = like.SuggestFormat()});
}

// Moves a tensor of the batch to the device of `to`.
Tensor Uploaded(const Tensor& given, const Tensor& to) {
  if (!given.defined() || !to.defined() || given.device() == to.device())
    return given;
  const StreamScope scope(Stream::ForCopies(given.device(), to.device()));
  return given.To(to.device());
}

void CopyTo(const Tensor& target, const Tensor& given) {
  if (!target.defined()) return;
  Require(given.defined() && given.shape() == target.shape(), kOp,
          "expected values of shape ", target.shape().ToString(), ", got ",
          given.defined() ? given.shape().ToString() : "none");
  target.CopyFrom(given);
}

const LinkWindow& WindowOf(
    const std::vector<RecordedProgram::RecordedStage>& stages,
    const LinkEnds& ends) {
  for (const auto& stage : stages) {
    if (const LinkWindow* window =
            WindowOf(stage.windows, stage.spec.index, ends))
      return *window;
  }
  Fail(kOp,
       absl::StrCat("there is no window from stage ", ends.from, " to ",
                    ends.to),
       absl::StatusCode::kFailedPrecondition);
}

}  // namespace

std::string WhyNotRecorded(const nn::Module& module, const StageSpec& spec) {
  if (!spec.graph) return "PipelineOptions::graph is off";
  if (spec.recompute) return "it computes its forwards again";
  if (spec.deferred_batch_norm) return "its statistics are deferred";
  if (!module.Generators().empty()) return "it draws random numbers";
  return "";
}

RecordedProgram::RecordedProgram(std::shared_ptr<const StepPlan> plan,
                                 const ProgramRun::Batch& like,
                                 const std::vector<RecordedStage>& stages,
                                 const StepGate& gate,
                                 std::shared_ptr<StepNumber> number)
    : plan_(std::move(plan)),
      number_(std::move(number)),
      trace_(DevicesOf(stages)) {
  for (const RecordedStage& stage : stages) {
    const std::string why = WhyNotRecorded(stage.module, stage.spec);
    Require(why.empty(), kOp, "stage ", stage.spec.index, ": ", why);
  }
  const std::vector<Device> devices = DevicesOf(stages);
  for (const RecordedStage& stage : stages) {
    const int index = stage.spec.index;
    Require(devices.size() == 1 || stage.windows.empty(), kOp,
            "the worker's stages are on several devices, which cannot agree by "
            "the link between stages ",
            index, " and ",
            stage.windows.empty() ? index : stage.windows.begin()->first);
  }
  for (Device device : devices)
    skips_[device.index()] = Tensor::Zeros(Shape(), {.device = device});
  for (const Tensor& x : like.inputs) {
    batch_.inputs.push_back(x.defined() ? OnGpu(x, devices.front()) : Tensor());
  }
  if (like.targets.defined())
    batch_.targets = OnGpu(like.targets, stages.back().module.device());
  if (like.loss_scale.defined())
    batch_.loss_scale = OnGpu(like.loss_scale, like.loss_scale.device());
  // The graph has memory of its own; the earlier steps' memory is not needed.
  for (Device device : devices) {
    Synchronize(device);
    ReleaseCachedGpuMemory(device);
  }
  const auto run_stages = RunStages(stages);
  graph_ = Graph::Record(devices, [&] {
    run_.emplace(*plan_, batch_, run_stages, &trace_);
    if (const absl::Status status = run_->Run(); !status.ok())
      throw Error(status);
    gradients_ = run_->TakeGradients();
    report_ = run_->Report();
    Agree(stages, gate);
    run_->UndoIf([this](Device gpu) { return SkipOn(gpu); });
  });
}

void RecordedProgram::Agree(const std::vector<RecordedStage>& stages,
                            const StepGate& gate) {
  const Device first = stages.front().module.device();
  const Tensor& skip = SkipOn(first);
  for (const RecordedStage& stage : stages)
    CurrentStream(first).WaitFor(CurrentStream(stage.module.device()));
  std::vector<const LinkWindow*> children;
  for (const LinkEnds& ends : gate.children)
    children.push_back(&WindowOf(stages, ends));
  const auto await = [](const LinkWindow& window) {
    window.AwaitGate(std::chrono::steady_clock::time_point::max())
        .IgnoreError();  // a GPU's wait returns none
  };
  for (const LinkWindow* child : children) await(*child);
  const uint64_t* word = nullptr;
  if (gate.parent.has_value()) {
    const LinkWindow& parent = WindowOf(stages, *gate.parent);
    parent.RaiseGate();
    await(parent);
    word = parent.gate();
  }
  DecideStep(word, *number_, skip);
  for (const LinkWindow* child : children) child->RaiseGate(skip);
  for (const auto& [gpu, there] : skips_)
    if (gpu != first.index()) there.CopyFrom(skip);
}

std::vector<Device> RecordedProgram::DevicesOf(
    const std::vector<RecordedStage>& all) {
  std::vector<Device> devices;
  for (const RecordedStage& stage : all) {
    const Device device = stage.module.device();
    if (!absl::c_linear_search(devices, device)) devices.push_back(device);
  }
  return devices;
}

std::vector<ProgramRun::RunStage> RecordedProgram::RunStages(
    const std::vector<RecordedStage>& stages) {
  std::vector<ProgramRun::RunStage> runs;
  std::map<std::string, StageStreams> of_device;
  for (const RecordedStage& stage : stages) {
    const Device device = stage.module.device();
    const auto [made, is_new] = of_device.try_emplace(device.ToString());
    if (is_new)
      made->second = StageStreams::Make(device, plan_->at_once).For(*plan_);
    const StageStreams& streams = made->second;
    const int index = stage.spec.index;
    LocalLinks::Options options{.copy_streams = plan_->copy_streams,
                                .trace = &trace_,
                                .windows = stage.windows};
    auto& links =
        links_.try_emplace(index, index, streams, links_, std::move(options))
            .first->second;
    runs.push_back({stage.module, stage.spec, streams, links, stage.own_loss});
  }
  return runs;
}

absl::StatusOr<ProgramRun::Batch> RecordedProgram::Upload(
    const ProgramRun::Batch& batch) const {
  return CatchErrors([&]() -> absl::StatusOr<ProgramRun::Batch> {
    ProgramRun::Batch there = {batch.inputs,
                               Uploaded(batch.targets, batch_.targets),
                               batch.loss_scale};
    for (size_t i = 0; i < std::min(there.inputs.size(), batch_.inputs.size());
         ++i)
      there.inputs[i] = Uploaded(batch.inputs[i], batch_.inputs[i]);
    return there;
  });
}

absl::Status RecordedProgram::Put(const ProgramRun::Batch& batch) {
  return CatchErrors([&] {
    Require(batch.inputs.size() == batch_.inputs.size(), kOp, "expected ",
            batch_.inputs.size(), " inputs, got ", batch.inputs.size());
    for (size_t i = 0; i < batch_.inputs.size(); ++i)
      CopyTo(batch_.inputs[i], batch.inputs[i]);
    CopyTo(batch_.targets, batch.targets);
    CopyTo(batch_.loss_scale, batch.loss_scale);
  });
}

absl::Status RecordedProgram::Run(bool timed) {
  launched_ = false;
  return CatchErrors([&] {
    graph_->Replay(timed);
    launched_ = true;
  });
}

void RecordedProgram::Undo() const {
  if (launched_) run_->Undo();
}

StageReport RecordedProgram::Report() const {
  const auto read = [](const Tensor& x) {
    if (!x.defined()) return Tensor();
    const Tensor host =
        Tensor::Empty(x.shape(), {.dtype = x.dtype(), .pinned = true});
    return host.CopyFromAsync(x);
  };
  return {read(report_.losses), read(report_.correct), {}};
}

}  // namespace baton::dist
