// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "models/distributed/micro_batches.h"

namespace baton::dist {
namespace {

// Longer limits mean no limit; adding them to a time would overflow.
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
  if (options.split_size > 0 && !options.micro_batches.empty()) {
    return absl::InvalidArgumentError(
        "a pipeline takes a split size or micro-batches of given sizes");
  }
  if (options.at_once < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a GPU cannot work on ", options.at_once, " micro-batches at once"));
  }
  if (options.loss_scale.has_value()) {
    RETURN_IF_ERROR(
        CatchErrors([&] { optim::LossScale check(*options.loss_scale); }));
  }
  return CheckRoutes(options.routes, static_cast<int>(modules));
}

// Numbers what the stages name from 0 in the order of the first mentions.
std::vector<int> NumbersOf(const std::vector<std::string>& named) {
  std::map<std::string, int> numbers;
  std::vector<int> of_stages;
  for (const std::string& name : named) {
    const int next = static_cast<int>(numbers.size());
    of_stages.push_back(numbers.try_emplace(name, next).first->second);
  }
  return of_stages;
}

std::vector<int> WorkersOf(const std::vector<StageModule>& modules) {
  std::vector<std::string> names;
  for (const StageModule& module : modules)
    names.push_back(module.owner().name);
  return NumbersOf(names);
}

// Returns an error for an impossible schedule.
absl::Status CheckChoice(const ScheduleChoice& choice,
                         const std::vector<int>& device_of_stage) {
  Workload work;
  work.worker_of_stage = device_of_stage;
  if (choice.given) work.micro_batches = choice.given->micro_batches();
  return MakeSchedule(choice, work).status();
}

// Makes the group of each worker's stages; the first worker's knows the others.
absl::StatusOr<std::vector<RRef<StageGroup>>> MakeGroups(
    rpc::Agent& agent, const std::vector<RRef<Stage>>& stages,
    const std::vector<int>& worker_of_stage, int compute_threads) {
  std::map<int, std::vector<RRef<Stage>>> of_worker;
  for (size_t i = 0; i < stages.size(); ++i)
    of_worker[worker_of_stage[i]].push_back(stages[i]);
  const auto make = [&](const std::vector<RRef<Stage>>& here,
                        const std::vector<RRef<StageGroup>>& others) {
    return rpc::Create<StageGroup>(agent, here.front().owner(), here,
                                   int32_t{compute_threads}, others);
  };
  std::vector<Future<RRef<StageGroup>>> making;
  for (const auto& [worker, here] : of_worker) {
    if (worker > 0) making.push_back(make(here, {}));
  }
  ASSIGN_OR_RETURN(auto groups, WaitAll(making).Await(kNoLimit));
  ASSIGN_OR_RETURN(auto first, make(of_worker.at(0), groups).Await(kNoLimit));
  groups.insert(groups.begin(), std::move(first));
  return groups;
}

}  // namespace

void RegisterPipeline(rpc::Registry& registry) {
  registry.Add<Stage>().Add<StageGroup>().Add<StateStore>().Add<StateKeeper>();
  registry.AddFunction<&ClaimedEpoch>();
}

Pipeline::Pipeline(const PipelineOptions& options,
                   std::vector<RRef<Stage>> stages,
                   std::vector<RRef<StageGroup>> groups, Places places)
    : options_(options),
      stages_(std::move(stages)),
      groups_(std::move(groups)),
      places_(std::move(places)) {
  if (options.loss_scale) loss_scale_.emplace(*options.loss_scale);
}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Make(
    rpc::Agent& agent, const PipelineOptions& options,
    const std::vector<StageModule>& modules) {
  RETURN_IF_ERROR(CheckOptions(options, modules.size()));
  const std::vector<int> workers = WorkersOf(modules);
  // From last to first, because each stage needs the later ones.
  std::vector<RRef<Stage>> stages(modules.size());
  ASSIGN_OR_RETURN(std::optional<RRef<StageLoss>> loss,
                   options.loss.At(agent, modules.back().owner()));
  StageSpec spec;
  spec.count = static_cast<int32_t>(modules.size());
  spec.recompute = options.recompute;
  spec.graph = options.graph;
  spec.deferred_batch_norm = options.deferred_batch_norm;
  spec.routes = options.routes;
  spec.line = options.line;
  spec.epoch = options.epoch;
  for (size_t i = modules.size(); i-- > 0;) {
    spec.index = static_cast<int32_t>(i);
    std::map<int32_t, RRef<Stage>> behind;
    const StageWiring wiring(spec.index, spec.count, spec.routes);
    for (int target : wiring.targets())
      behind.emplace(target, stages[static_cast<size_t>(target)]);
    stages[i] = modules[i].MakeStage(agent, spec, behind,
                                     std::exchange(loss, std::nullopt));
  }
  for (const RRef<Stage>& stage : stages) {
    // The agent's own time limit ends the call.
    RETURN_IF_ERROR(stage.Ready().Await(kNoLimit));
  }
  ASSIGN_OR_RETURN(auto groups,
                   MakeGroups(agent, stages, workers, options.compute_threads));
  ASSIGN_OR_RETURN(Places places, PlacesOf(groups, workers));
  RETURN_IF_ERROR(CheckChoice(options.schedule, places.device_of_stage));
  PipelineOptions kept = options;
  kept.step_timeout =
      std::min<std::chrono::milliseconds>(kept.step_timeout, kLongestStep);
  return std::unique_ptr<Pipeline>(new Pipeline(
      kept, std::move(stages), std::move(groups), std::move(places)));
}

absl::StatusOr<Pipeline::Places> Pipeline::PlacesOf(
    const std::vector<RRef<StageGroup>>& groups,
    const std::vector<int>& worker_of_stage) {
  std::vector<Future<std::vector<Device>>> asked;
  for (const RRef<StageGroup>& group : groups)
    asked.push_back(group.Async<&StageGroup::Devices>());
  ASSIGN_OR_RETURN(const auto devices, WaitAll(asked).Await(kNoLimit));
  Places places{worker_of_stage, {}};
  std::vector<size_t> next(groups.size(), 0);
  std::vector<std::string> names;
  for (const int number : worker_of_stage) {
    const auto worker = static_cast<size_t>(number);
    const Device device = devices[worker].at(next[worker]++);
    names.push_back(absl::StrCat(number, " ", device.ToString()));
    places.on_gpus |= device.is_cuda();
  }
  places.device_of_stage = NumbersOf(names);
  return places;
}

absl::StatusOr<StepPlan> Pipeline::PlanFor(const BatchInputs& inputs,
                                           const Tensor& targets,
                                           bool training) const {
  StepPlan plan;
  ASSIGN_OR_RETURN(plan.rows, inputs.Rows());
  if (training && !targets.defined())
    return absl::InvalidArgumentError("a training step needs targets");
  if (targets.defined()) RETURN_IF_ERROR(inputs.CheckTargets(targets));
  RETURN_IF_ERROR(CatchErrors([&] {
    const auto& sizes = options_.micro_batches;
    for (const RowRange& part :
         training ? SplitRows(plan.rows, options_.split_size, sizes)
                  : SplitEvaluated(plan.rows, options_.split_size, sizes))
      plan.micro_batches.push_back(part.size());
  }));
  if (training) {
    plan.at_once = options_.at_once;
    plan.overlap = options_.overlap;
  }
  plan.copy_streams = options_.copy_streams;
  plan.training = training;
  plan.loss = targets.defined() ? options_.loss.kind() : Loss::kNone;
  return plan;
}

Workload Pipeline::WorkFor(const StepPlan& plan) const {
  Workload work;
  work.worker_of_stage = places_.device_of_stage;
  work.sizes = GroupSizes(SplitRows(plan.rows, plan.micro_batches),
                          static_cast<size_t>(plan.at_once));
  work.micro_batches = static_cast<int>(work.sizes.size());
  return work;
}

absl::StatusOr<std::vector<Program>> Pipeline::ProgramsOf(
    const Schedule& schedule, const Workload& work,
    const StepPlan& plan) const {
  // A value sent by one device is taken before the same device sends again.
  ASSIGN_OR_RETURN(const Simulation predicted, Simulate(schedule, work));
  std::vector<Program> programs(groups_.size());
  for (const TimedInstruction& timed : predicted.order) {
    const auto stage = static_cast<size_t>(timed.instruction.stage);
    programs[static_cast<size_t>(places_.worker_of_stage[stage])].push_back(
        timed.instruction);
  }
  for (Program& program : programs)
    program = Ungrouped(program, plan.at_once,
                        static_cast<int>(plan.micro_batches.size()));
  return programs;
}

const Pipeline::Told* Pipeline::LastTrained() const {
  const auto last = absl::c_find_if(told_, [this](const Told& told) {
    return told.plan.id == last_trained_;
  });
  return last == told_.end() ? nullptr : &*last;
}

int64_t Pipeline::KernelsReplayed() const {
  const Told* last = LastTrained();
  return last != nullptr && last->recording == Told::Recording::kMade
             ? last->kernels
             : 0;
}

std::string Pipeline::WhyNotRecorded() const {
  if (!places_.on_gpus) return "";
  if (!options_.graph || options_.windows == Windows::kOff)
    return "the pipeline's options say not to";
  const Told* last = LastTrained();
  if (last == nullptr) return "no step has trained";
  if (last->recording == Told::Recording::kMade) return "";
  if (!last->plan.steps) return "the step does not include the optimizer's";
  if (!last->why_not_recorded.empty()) return last->why_not_recorded;
  if (!last->why_no_window.empty())
    return absl::StrCat("there is no window ", last->why_no_window);
  return "too few steps have trained with inputs of these shapes";
}

absl::Status Pipeline::MakeReplicas(rpc::Agent& agent,
                                    const std::vector<Pipeline*>& pipelines) {
  static std::atomic<uint64_t> last = 0;
  const std::string name =
      absl::StrCat("replicas ", ++last, " of pipelines of ", agent.self().name);
  std::vector<std::vector<std::string>> workers;  // one list for each group
  for (const Pipeline* pipeline : pipelines) {
    if (pipeline->places_ == pipelines.front()->places_) continue;
    return absl::InvalidArgumentError(
        "replicas of a pipeline have the same stages at each of their workers");
  }
  for (const Pipeline* pipeline : pipelines) {
    if (!pipeline->told_.empty()) {
      return absl::FailedPreconditionError(
          "a pipeline becomes a replica before its first step");
    }
    workers.resize(pipeline->groups_.size());
    for (size_t i = 0; i < workers.size(); ++i)
      workers[i].push_back(pipeline->groups_[i].owner().name);
  }
  std::vector<Future<void>> joining;
  for (const Pipeline* pipeline : pipelines) {
    const int64_t limit = pipeline->options_.step_timeout.count();
    for (size_t i = 0; i < workers.size(); ++i) {
      joining.push_back(pipeline->groups_[i].Async<&StageGroup::JoinReplicas>(
          absl::StrCat(name, "/worker ", i), workers[i], limit));
    }
  }
  return WaitAll(joining).Await(kNoLimit);
}

absl::StatusOr<std::vector<PipelineLink>> Pipeline::Links() const {
  std::vector<Future<std::vector<PipelineLink>>> asked;
  for (const RRef<StageGroup>& group : groups_)
    asked.push_back(group.Async<&StageGroup::Links>());
  // The agent's own time limit ends the calls.
  ASSIGN_OR_RETURN(const auto of_workers, WaitAll(asked).Await(kNoLimit));
  std::vector<PipelineLink> links;
  for (const auto& of_worker : of_workers)
    links.insert(links.end(), of_worker.begin(), of_worker.end());
  std::sort(links.begin(), links.end(),
            [](const PipelineLink& a, const PipelineLink& b) {
              return std::pair(a.from, a.to) < std::pair(b.from, b.to);
            });
  return links;
}

int Pipeline::warm_up_steps() const {
  // One step learns the values' shapes, and the one after it is recorded.
  const int recorded = places_.on_gpus && options_.graph ? 2 : 0;
  const int first = recorded + 1 + (places_.on_gpus ? kTimedFirst : 0);
  return options_.schedule.name == "auto" ? first + 1 + recorded : first;
}

void Pipeline::KeepStatesBy(std::vector<RRef<StateKeeper>> keepers) {
  Require(keepers.size() == groups_.size(), "pipeline",
          "each worker keeps its own states");
  keepers_ = std::move(keepers);
  told_.clear();
}

void Pipeline::set_split_size(int64_t rows) {
  options_.split_size = rows;
  options_.micro_batches.clear();
  ordered_.clear();
  told_.clear();
  last_ = nullptr;
}

}  // namespace baton::dist
