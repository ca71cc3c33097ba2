// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/parallel.h"
#include "core/status.h"
#include "models/distributed/stage_group.h"

// How a worker executes its program of a step: launched instruction by
// instruction, or replayed by GPUs, which reach its end without the host.
namespace baton::dist {
namespace {

using StepClock = std::chrono::steady_clock;

// The time for a neighbor to make its part.
constexpr std::chrono::milliseconds kMakeWindows{10'000};

double SecondsSince(StepClock::time_point begin) {
  return std::chrono::duration<double>(StepClock::now() - begin).count();
}

}  // namespace

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
    if (task.plan->steps)
      return StepParameters(task, program.TakeGradients(), report);
    if (!task.plan->training) return absl::OkStatus();
    for (const auto& [leaf, gradient] : program.TakeGradients())
      task.context->Accumulate(leaf, gradient);
    return absl::OkStatus();
  });
  if (!status.ok()) program.Undo();
  // Messages of a failed step must not arrive in the next one.
  DrainLinks(task);
  if (trace != nullptr && status.ok()) Report(task, *trace, waited, report);
  RETURN_IF_ERROR(status);
  return report;
}

bool StageGroup::GoesByItself(const Task& task) {
  return task.order.replay == Replay::kProgram &&
         !task.call.agent().tracer()->on() && !task.order.by_messages;
}

void StageGroup::Give(const TaskPtr& task, rpc::ObjectHold hold) const {
  const rpc::internal::HoldsOfThread within(hold.holds());
  auto report = CatchErrors([&] { return GiveProgram(*task); });
  // The work that was enqueued still ends.
  if (!report.ok()) task->progress->Break(report.status());
  const absl::Status heard = CatchErrors([&] {
    const Stream first = CurrentStream(numbers_.front()->device());
    for (const auto& number : numbers_)
      first.WaitFor(CurrentStream(number->device()));
    AfterWork(first, [task, report](const absl::Status& ended) {
      HearEnd(task, ended.ok() ? report : ended);
    });
  });
  // The next step would overwrite the times of this one.
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
  RETURN_IF_ERROR(program.Run(task.order.timed));
  GroupReport report;
  report.last = program.Report();
  RETURN_IF_ERROR(StepHeld(task, program.TakeGradients(), task.order.request,
                           [&](Device gpu) { return program.SkipOn(gpu); }));
  KeepHeld(task);
  return report;
}

void StageGroup::HearEnd(const TaskPtr& task,
                         absl::StatusOr<GroupReport> report) {
  const Progress& progress = *task->progress;
  if (report.ok() && progress.numbers.front()->decided() >= task->order.step) {
    progress.agreed.Set(0.0);
    if (task->order.timed) {
      const absl::Status read =
          CatchErrors([&] { report->times = task->recorded->trace().Times(); });
      if (!read.ok()) report = read;
    }
    // Nothing was sent by messages, which might have failed since.
    Finish(*task, std::move(report));
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
    if (task.order.record) RecordProgram(task, *report);
    return report;
  });
}

absl::StatusOr<GroupReport> StageGroup::RunProgram(const Task& task) const {
  std::vector<Device> devices;
  for (const auto& number : numbers_) devices.push_back(number->device());
  std::optional<StepTrace> trace;
  if (IsTraced(task)) trace.emplace(devices);
  StepTrace* const times = trace.has_value() ? &*trace : nullptr;
  std::vector<ProgramRun::RunStage> here;
  std::map<int, LocalLinks> local;  // if no stage is at another worker
  for (size_t i = 0; i < stages_.size(); ++i) {
    nn::Module& module = task.order.replay == Replay::kPasses
                             ? stages_[i]->replayed()
                             : stages_[i]->module();
    const StageSpec& spec = stages_[i]->spec();
    const StageStreams streams = StageStreams::Current(module.device());
    StageLinks* links = task.progress->mail[i].get();
    if (stages_.size() == static_cast<size_t>(spec.count)) {
      links = &local
                   .try_emplace(spec.index, spec.index, streams, local,
                                LocalLinks::Options{
                                    .copy_streams = task.plan->copy_streams,
                                    .trace = times,
                                    .others = links})
                   .first->second;
    }
    here.push_back({module, spec, streams, *links, stages_[i]->loss(),
                    task.replicas.empty() ? nullptr : task.replicas[i].get()});
  }
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

void StageGroup::RecordProgram(const Task& task, GroupReport& report) {
  std::shared_ptr<RecordedProgram> made;
  const absl::Status status = CatchErrors([&] {
    Require(task.replicas.empty(), "recorded_program",
            "the gradients are averaged over replicas");
    std::vector<RecordedProgram::RecordedStage> here;
    for (const auto& stage : stages_) {
      here.push_back({stage->module(), stage->spec(), stage->loss(),
                      stage->WindowsOf(task.order.plan)});
    }
    made = std::make_shared<RecordedProgram>(task.plan, task.batch, here,
                                             task.order.gate, numbers_.front());
  });
  std::string& why = report.why_not_recorded.emplace(status.message());
  if (!status.ok()) {
    for (const auto& stage : stages_) stage->SayNoWindow(why);
    if (why.empty()) why = status.ToString();
    return;
  }
  report.kernels = made->kernels();
  MutexLock lock(mutex_);
  if (const auto found = plans_.find(task.order.plan); found != plans_.end())
    found->second.recorded = std::move(made);
}

bool StageGroup::IsTraced(const Task& task) {
  return task.order.timed || task.call.agent().tracer()->on();
}

void StageGroup::Report(const Task& task, const StepTrace& trace, double waited,
                        GroupReport& report) {
  if (task.order.timed) {
    report.times = trace.Times();
    for (StepTimes& times : report.times) {
      times.until_begin += waited;
      times.until_end += waited;
    }
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

}  // namespace baton::dist
