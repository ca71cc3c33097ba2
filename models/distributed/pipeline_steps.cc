// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/step_trace.h"

// The trainer's part of a step: sends orders and receives reports.
namespace baton::dist {
namespace {

// How long the stages may take to give up a step that failed somewhere.
constexpr std::chrono::milliseconds kGiveUp{5000};
// The number of plans that are remembered; older ones are sent again if used.
constexpr size_t kMostPlans = 64;
// The number of plans that have windows, because windows hold memory.
constexpr std::ptrdiff_t kMostWindows = 4;
// Added to the step's own deadline, whose error message is better.
constexpr std::chrono::milliseconds kGrace{2000};

// Runs one step at all workers. After an error it makes the step fail at all of
// them and waits for that: only then may the caller change or free what the
// stages use.
Future<std::vector<GroupReport>> RunAtAll(
    const std::vector<RRef<StageGroup>>& groups,
    const std::vector<StepOrder>& orders, const rpc::CallOptions& options,
    const std::shared_ptr<rpc::CallScope>& scope) {
  std::vector<Future<GroupReport>> runs;
  for (size_t i = 0; i < groups.size(); ++i) {
    runs.push_back(
        scope == nullptr
            ? groups[i].Async<&StageGroup::Run>(options, orders[i])
            : groups[i].Async<&StageGroup::Run>(options, scope, orders[i]));
  }
  Promise<std::vector<GroupReport>> result;
  WaitAll(runs).OnReady([groups, runs, result, step = orders.front().step](
                            const absl::StatusOr<std::vector<GroupReport>>&
                                reports) {
    if (reports.ok()) {
      result.Set(reports);
      return;
    }
    const absl::Status why = reports.status();
    rpc::CallOptions give_up;
    give_up.timeout = kGiveUp;
    std::vector<Future<void>> ends;
    for (size_t i = 0; i < groups.size(); ++i) {
      Promise<void> end;
      const auto ended = [end](const auto&) { end.Set(absl::OkStatus()); };
      runs[i].OnReady(ended);
      groups[i].Async<&StageGroup::Abort>(give_up, step, why).OnReady(ended);
      ends.push_back(end.future());
    }
    WaitAll(ends).OnReady(
        [result, why](const absl::Status&) { result.Set(why); });
  });
  return result.future();
}

// Calls `on_failure`, unless it is null, before anyone hears of the failure.
Future<std::vector<GroupReport>> CallOnFailure(
    const Future<std::vector<GroupReport>>& step,
    const std::function<void()>& on_failure) {
  if (on_failure == nullptr) return step;
  Promise<std::vector<GroupReport>> result;
  step.OnReady([result, on_failure](
                   const absl::StatusOr<std::vector<GroupReport>>& reports) {
    if (!reports.ok()) on_failure();
    result.Set(reports);
  });
  return result.future();
}

// Returns the loss of a step; `report` is the last stage's. Losses are added in
// the order of micro-batches.
double LossOf(const StageReport& report) {
  if (!report.losses.defined()) return 0;
  const auto losses = report.losses.To(DType::kF64).ToVector<double>();
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

// The trainer computes nothing itself: on a GPU that a worker keeps busy it
// would have to wait for a time slice.
double AccuracyOf(const StageReport& report, const Tensor& targets) {
  if (!report.correct.defined()) return 0;
  return report.correct.Item() / static_cast<double>(targets.dim(0));
}

// Returns a tree of all workers, with the first as its root, along links
// between their stages; nullopt if the links do not connect all workers.
std::optional<std::vector<StepGate>> GatesOf(
    const std::vector<LinkEnds>& links, const std::vector<int>& worker_of_stage,
    size_t workers) {
  std::vector<StepGate> gates(workers);
  std::vector<int> reached = {0};
  for (size_t next = 0; next < reached.size(); ++next) {
    const int from = reached[next];
    for (const LinkEnds& link : links) {
      const int a = worker_of_stage[static_cast<size_t>(link.from)];
      const int b = worker_of_stage[static_cast<size_t>(link.to)];
      if (a != from && b != from) continue;
      const int other = a == from ? b : a;
      if (absl::c_linear_search(reached, other)) continue;
      gates[static_cast<size_t>(from)].children.push_back(link);
      gates[static_cast<size_t>(other)].parent = link;
      reached.push_back(other);
    }
  }
  if (reached.size() < workers) return std::nullopt;
  return gates;
}

}  // namespace

Pipeline::Told& Pipeline::ToldFor(const StepPlan& plan, const Sink& sink,
                                  const std::vector<ValueSpec>& specs) {
  std::vector<rpc::RRefId> hosts;
  for (const RRef<OptimizerHost>& host : sink.hosts) hosts.push_back(host.id());
  for (Told& told : told_) {
    if (told.plan.rows == plan.rows && told.plan.training == plan.training &&
        told.plan.loss == plan.loss && told.plan.steps == sink.steps &&
        told.hosts == hosts && told.specs == specs)
      return told;
  }
  if (told_.size() >= kMostPlans) told_.clear();
  Told& told = told_.emplace_back(Told{plan, hosts, specs});
  told.plan.id = ++last_plan_;
  told.plan.steps = sink.steps;
  return told;
}

bool Pipeline::AsksForWindows(const Told& told) const {
  if (options_.windows == Windows::kOff || !told.plan.training || told.asked)
    return false;
  return std::count_if(told_.begin(), told_.end(), [](const Told& each) {
           return each.asked;
         }) < kMostWindows;
}

bool Pipeline::AsksForRecordings(const Told& told) const {
  return told.asked && told.known && ReplayFor(told) == Replay::kNothing &&
         places_.on_gpus && told.recording == Told::Recording::kToBeAsked;
}

// Programs are recorded after a step with windows; where that is impossible,
// single passes are replayed.
Replay Pipeline::ReplayFor(const Told& told) const {
  using Recording = Told::Recording;
  if (!places_.on_gpus || !told.plan.training || !options_.graph)
    return Replay::kNothing;
  if (told.recording == Recording::kMade) return Replay::kProgram;
  const bool may_be = told.plan.steps && told.why_no_window.empty() &&
                      told.recording != Recording::kRefused &&
                      (told.asked || AsksForWindows(told));
  return may_be ? Replay::kNothing : Replay::kPasses;
}

uint64_t Pipeline::OldestPlan() const {
  uint64_t oldest = last_plan_;
  for (const Told& told : told_) oldest = std::min(oldest, told.plan.id);
  for (const UnderWay& step : under_way_) oldest = std::min(oldest, step.plan);
  return oldest;
}

absl::StatusOr<std::vector<StepOrder>> Pipeline::OrdersFor(
    const StepPlan& plan, const Sink& sink,
    const std::vector<ValueSpec>& specs) {
  Schedule schedule;
  Workload work;
  bool timed = false;
  if (plan.training) {
    ASSIGN_OR_RETURN(const Ordered* ordered, OrderedFor(plan));
    last_ = ordered;
    schedule = ordered->schedule;
    work = ordered->work;
    timed = IsTimed(places_.on_gpus,
                    ordered->steps + static_cast<int64_t>(under_way_.size()));
  } else {
    work = WorkFor(plan);
    ASSIGN_OR_RETURN(schedule, MakeForwards(work));
  }
  Told& told = ToldFor(plan, sink, specs);
  if (plan.training) last_trained_ = told.plan.id;
  if (options_.windows == Windows::kRequired && !told.why_no_window.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "windows are required, but there is none ", told.why_no_window));
  }
  const Replay replay = ReplayFor(told);
  const bool asks = AsksForWindows(told);
  const bool records = AsksForRecordings(told);
  told.asked |= asks;
  std::optional<std::vector<StepGate>> gates;
  if (records) {
    gates = GatesOf(told.gpu_windows, places_.worker_of_stage, groups_.size());
    told.recording =
        gates.has_value() ? Told::Recording::kAsked : Told::Recording::kRefused;
    if (!gates.has_value() && !told.gpu_windows.empty())
      told.why_no_window = "between all workers: the GPUs could not agree";
  } else if (plan.training && replay != Replay::kProgram) {
    gates = GatesOf(told.windows, places_.worker_of_stage, groups_.size());
  }
  const bool by_gates =
      replay == Replay::kProgram || (!records && gates.has_value());
  std::vector<Program> programs;
  if (!told.known) {
    ASSIGN_OR_RETURN(programs, ProgramsOf(schedule, work, plan));
  }
  std::vector<StepOrder> orders(groups_.size());
  for (size_t i = 0; i < orders.size(); ++i) {
    orders[i].plan = told.plan.id;
    orders[i].oldest_plan = OldestPlan();
    orders[i].timed = timed;
    orders[i].windows = told.windows;
    if (replay == Replay::kProgram)
      orders[i].windows.insert(orders[i].windows.end(),
                               told.gpu_windows.begin(),
                               told.gpu_windows.end());
    orders[i].replay = replay;
    orders[i].record = records && gates.has_value();
    if (gates.has_value()) orders[i].gate = std::move((*gates)[i]);
    orders[i].by_messages = sink.steps && !by_gates;
    if (asks) orders[i].make_windows = options_.windows;
    if (told.known) continue;
    StepPlan& part = orders[i].new_plan.emplace(told.plan);
    part.program = std::move(programs[i]);
    for (const RRef<OptimizerHost>& host : sink.hosts) {
      if (host.owner() == groups_[i].owner()) part.optimizer = host;
    }
    if (!keepers_.empty()) part.keeper = keepers_[i];
  }
  return orders;
}

// Gives each input to the workers whose stages take it.
absl::Status Pipeline::PutInputs(const BatchInputs& inputs,
                                 std::vector<StepOrder>& orders) const {
  const Values& values = inputs.values();
  const StageWiring wiring(kBatch, num_stages(), options_.routes);
  return CatchErrors([&] {
    for (int stage : wiring.targets()) {
      const int worker = places_.worker_of_stage[static_cast<size_t>(stage)];
      Values& there = orders[static_cast<size_t>(worker)].inputs;
      there.resize(values.size());
      for (size_t i : wiring.OutputsTo(stage, values.size()))
        there[i] = values[i];
    }
  });
}

Future<std::vector<GroupReport>> Pipeline::Begin(const BatchInputs& inputs,
                                                 const Tensor& targets,
                                                 bool training,
                                                 const Sink& sink) {
  const auto refuse = [](const absl::Status& why) {
    return ReadyFuture<std::vector<GroupReport>>(why);
  };
  Collect();
  if (under_way_.size() >= kMostUnderWay) {
    return refuse(absl::FailedPreconditionError(
        absl::StrCat(under_way_.size(),
                     " steps are under way: await the first one's result")));
  }
  const auto plan = PlanFor(inputs, targets, training);
  if (!plan.ok()) return refuse(plan.status());
  std::vector<ValueSpec> specs;
  if (training && options_.windows != Windows::kOff) {
    specs = SpecOf({inputs.values(), {}});
    specs.push_back(ValueSpec::Of(targets));
  }
  auto orders = OrdersFor(*plan, sink, specs);
  if (!orders.ok()) return refuse(orders.status());
  if (const absl::Status status = PutInputs(inputs, *orders); !status.ok())
    return refuse(status);
  const uint64_t step = ++last_step_;
  const bool scaled = sink.steps && options_.loss_scale.has_value();
  const StepRequest request =
      sink.next_request ? sink.next_request() : StepRequest();
  for (StepOrder& order : *orders) {
    order.step = step;
    order.after = under_way_.empty() ? 0 : under_way_.back().step;
    order.request = request;
    order.kept_as = sink.number;
    order.loss_scale = scaled ? loss_scale_->value() : 0;
    // Gates carry no sums and no news of an overflow.
    order.by_messages |= scaled || request.clip_norm != optim::Clip::kNone;
    order.time_left = options_.step_timeout;
  }
  if (plan->loss != Loss::kNone)
    (*orders)[static_cast<size_t>(places_.worker_of_stage.back())].targets =
        targets;
  rpc::CallOptions options;
  options.timeout = options_.step_timeout + kGrace;
  auto reports = CallOnFailure(RunAtAll(groups_, *orders, options, sink.scope),
                               sink.on_failure);
  const bool counts = training && (!places_.on_gpus || !options_.graph ||
                                   orders->front().replay != Replay::kNothing);
  under_way_.push_back(
      {step, orders->front().plan, counts, scaled, sink.hosts, reports});
  return reports;
}

Future<Pipeline::StepResult> Pipeline::Train(const Sink& sink,
                                             const BatchInputs& inputs,
                                             const Tensor& targets) {
  return Begin(inputs, targets, /*training=*/true, sink)
      .Then(
          [targets, last = static_cast<size_t>(places_.worker_of_stage.back())](
              const std::vector<GroupReport>& reports) {
            return StepResult{LossOf(reports[last].last),
                              AccuracyOf(reports[last].last, targets),
                              BubbleOf(reports), reports[last].overflowed};
          });
}

absl::StatusOr<Pipeline::EvalResult> Pipeline::Evaluate(
    const BatchInputs& inputs, const Tensor& targets) {
  ASSIGN_OR_RETURN(
      const std::vector<GroupReport> reports,
      Begin(inputs, targets, /*training=*/false, {}).Await(kNoLimit));
  const StageReport& last =
      reports[static_cast<size_t>(places_.worker_of_stage.back())].last;
  EvalResult result;
  RETURN_IF_ERROR(CatchErrors([&] {
    result.outputs = Joined(last.outputs);
    result.loss = LossOf(last);
    result.accuracy = AccuracyOf(last, targets);
  }));
  return result;
}

}  // namespace baton::dist
