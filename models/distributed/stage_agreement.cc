// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/distributed/engine.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"
#include "models/distributed/stage_group.h"

// How the workers of a pipeline agree that all programs of a step have run.
namespace baton::dist {
namespace {

// Added to a step's deadline, to hear from the others what happened to it.
constexpr std::chrono::milliseconds kLastWord{2000};

std::chrono::milliseconds LeftOf(MailLinks::Deadline deadline) {
  return std::max(
      std::chrono::milliseconds(1),
      std::chrono::ceil<std::chrono::milliseconds>(
          deadline + kLastWord - MailLinks::Deadline::clock::now()));
}

// Prefixes errors of `future` with the worker that they come from.
Future<double> SaidBy(const std::string& worker, const Future<double>& future) {
  Promise<double> promise;
  future.OnReady([worker, promise](const absl::StatusOr<double>& said) {
    if (said.ok()) {
      promise.Set(*said);
    } else {
      promise.Set(Annotate(said.status(), worker));
    }
  });
  return promise.future();
}

optim::GradientOf GradientsOf(const LeafGradients& gradients) {
  std::unordered_map<const void*, Gradient> sums;
  for (const auto& [leaf, sum] : gradients) sums[leaf.id()] = sum;
  return [sums = std::move(sums)](const Variable& parameter) {
    const auto found = sums.find(parameter.id());
    return found == sums.end() ? Gradient() : found->second;
  };
}

// Divides the gradients by the scale in f32; returns whether one is infinite or
// NaN.
bool Unscale(double scale, LeafGradients& gradients) {
  std::map<std::string, std::pair<std::vector<Tensor>, std::vector<Tensor>>>
      by_device;  // pairs of targets and sources
  for (auto& [leaf, gradient] : gradients) {
    const Tensor scaled = gradient.values();
    const Tensor target = Tensor::Empty(
        scaled.shape(),
        {.device = scaled.device(), .format = scaled.SuggestFormat()});
    gradient = gradient.WithValues(target);
    auto& [targets, sources] = by_device[scaled.device().ToString()];
    targets.push_back(target);
    sources.push_back(scaled);
  }
  bool overflowed = false;
  for (const auto& [name, tensors] : by_device) {
    const auto& [targets, sources] = tensors;
    const TensorOptions there = {.device = targets.front().device()};
    const Tensor not_finite = Tensor::Zeros(Shape(), there);
    ops::UnscaleMany(targets, sources, Tensor::Full(Shape(), scale, there),
                     not_finite);
    overflowed |= not_finite.Item() != 0;
  }
  return overflowed;
}

}  // namespace

// The first group is told when each program ends, and tells all groups that all
// have run or that one failed. In other steps the trainer tells of failures.
void StageGroup::Watch(const TaskPtr& task) const {
  if (!stages_.front()->spec().is_first() || !task->order.by_messages) return;
  rpc::CallOptions options;
  options.timeout = LeftOf(task->deadline);
  const uint64_t step = task->order.step;
  std::vector<Future<double>> runs = {
      SaidBy(task->call.agent().self().name, task->progress->ran.future())};
  for (const RRef<StageGroup>& other : others_)
    runs.push_back(other.Async<&StageGroup::Ran>(options, step));
  WaitAll(runs).OnReady([others = others_, options, task,
                         step](const absl::StatusOr<std::vector<double>>& all) {
    const double square_norm =
        all.ok() ? std::accumulate(all->begin(), all->end(), 0.0) : 0;
    for (const RRef<StageGroup>& other : others) {
      (all.ok() ? other.Async<&StageGroup::Agree>(options, step, square_norm)
                : other.Async<&StageGroup::Abort>(options, step, all.status()))
          .OnReady([](const absl::Status&) {});
    }
    if (all.ok()) {
      task->progress->agreed.Set(square_norm);
    } else {
      task->progress->Break(all.status());
    }
  });
}

absl::StatusOr<double> StageGroup::Agreed(const Task& task,
                                          double square_norm) const {
  const Progress& progress = *task.progress;
  const Future<double> agreed = progress.agreed.future();
  progress.ran.Set(square_norm);
  if (!task.order.by_messages) {
    // GPUs that replay their programs have agreed.
    const absl::Status passed = task.order.replay == Replay::kProgram
                                    ? absl::OkStatus()
                                    : PassGates(task);
    // Who gave the step up says why better than a gate.
    progress.agreed.Set(passed.ok() ? absl::StatusOr<double>(0.0) : passed);
    return agreed.Await();
  }
  absl::StatusOr<double> all = agreed.Await(LeftOf(task.deadline));
  // The agreement may arrive at this moment.
  if (!all.ok() && !progress.agreed.Set(all.status())) all = agreed.Await();
  return all;
}

absl::Status StageGroup::PassGates(const Task& task) const {
  const StepGate& gate = task.order.gate;
  std::vector<WindowMap> windows;  // of each stage
  for (const auto& stage : stages_)
    windows.push_back(stage->WindowsOf(task.order.plan));
  const auto find = [&](const LinkEnds& link) -> const LinkWindow& {
    const LinkWindow* found = nullptr;
    for (size_t i = 0; i < stages_.size() && found == nullptr; ++i)
      found = WindowOf(windows[i], stages_[i]->spec().index, link);
    Require(found != nullptr, "stage_group", "there is no window from stage ",
            link.from, " to ", link.to);
    return *found;
  };
  const auto deadline = task.deadline + kLastWord;
  for (const LinkEnds& child : gate.children)
    RETURN_IF_ERROR(find(child).AwaitGate(deadline));
  if (gate.parent.has_value()) {
    find(*gate.parent).RaiseGate();
    RETURN_IF_ERROR(find(*gate.parent).AwaitGate(deadline));
  }
  // From now on nothing breaks the step here; if something has, nobody below
  // hears of an agreement.
  const Promise<double>& agreed = task.progress->agreed;
  if (!agreed.Set(0.0)) return agreed.future().Await().status();
  for (const LinkEnds& child : gate.children) find(child).RaiseGate();
  return absl::OkStatus();
}

absl::Status StageGroup::StepParameters(const Task& task,
                                        LeafGradients gradients,
                                        GroupReport& report) const {
  StepRequest request = task.order.request;
  const bool clips = request.clip_norm != optim::Clip::kNone;
  const bool scales = task.order.loss_scale != 0;
  double square_norm = 0;
  if (scales && Unscale(task.order.loss_scale, gradients)) {
    // Makes the sum over all infinite.
    square_norm = std::numeric_limits<double>::infinity();
  } else if (clips && task.optimizer != nullptr) {
    square_norm = task.optimizer->SquareNorm(GradientsOf(gradients));
  }
  ASSIGN_OR_RETURN(const double all, Agreed(task, square_norm));
  report.overflowed = scales && !std::isfinite(all);
  if (report.overflowed) return absl::OkStatus();
  if (clips) request.norm = std::sqrt(all);
  RETURN_IF_ERROR(StepHeld(task, gradients, request));
  KeepHeld(task);
  return absl::OkStatus();
}

void StageGroup::KeepHeld(const Task& task) {
  if (task.keeper == nullptr || task.order.kept_as == 0) return;
  task.keeper->KeepHeld(task.order.kept_as, task.progress->agreed.future());
}

absl::Status StageGroup::StepHeld(const Task& task,
                                  const LeafGradients& gradients,
                                  const StepRequest& request,
                                  const optim::SkipOn& skip_on) const {
  if (task.optimizer == nullptr) return absl::OkStatus();
  // Whoever holds the parameters never waits for a pipeline.
  const auto parameters = task.call.agent().service<Engine>()->parameters();
  Promise<std::shared_ptr<rpc::ObjectHold>> held;
  rpc::HoldObjects(
      task.call, {parameters}, rpc::Access::kExclusive,
      [held](absl::StatusOr<rpc::ObjectHold> hold) {
        if (!hold.ok()) {
          held.Set(hold.status());
          return;
        }
        held.Set(std::make_shared<rpc::ObjectHold>(*std::move(hold)));
      });
  ASSIGN_OR_RETURN(const auto hold, held.future().Await(kNoLimit));
  task.optimizer->StepHeld(GradientsOf(gradients), request, skip_on);
  return absl::OkStatus();
}

// The trainer's order may never come, and nobody else ends the step here.
Future<double> StageGroup::Ran(rpc::CallContext& call, uint64_t step) {
  auto progress = Open(step);
  if (!progress.ok()) return ReadyFuture<double>(progress.status());
  call.OnCancel([progress = *progress](const absl::Status& why) {
    progress->Break(Annotate(why, "the first stage gave up the step"));
  });
  return (*progress)->ran.future();
}

void StageGroup::Agree(uint64_t step, double square_norm) {
  auto progress = Open(step);
  if (progress.ok()) (*progress)->agreed.Set(square_norm);
}

}  // namespace baton::dist
