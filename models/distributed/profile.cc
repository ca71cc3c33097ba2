// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/profile.h"

#include <algorithm>
#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/compute_threads.h"
#include "core/graph.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/stream.h"
#include "models/distributed/gradient_sums.h"
#include "models/distributed/recorded_program.h"
#include "models/distributed/stage_compute.h"
#include "models/distributed/step_trace.h"

namespace baton::dist {
namespace {

using ProfileClock = std::chrono::steady_clock;

// Returns part * a + rest * b.
UnitCosts Mixed(const UnitCosts& a, double part, const UnitCosts& b,
                double rest) {
  const auto mix = [&](double x, double y) { return part * x + rest * y; };
  return {{mix(a.seconds.forward, b.seconds.forward),
           mix(a.seconds.input_grad, b.seconds.input_grad),
           mix(a.seconds.weight_grad, b.seconds.weight_grad)},
          mix(a.held_bytes, b.held_bytes),
          mix(a.output_bytes, b.output_bytes)};
}

double LiveBytes(Device device) {
  return static_cast<double>(
      (device.is_cuda() ? GpuMemoryStats(device) : CpuMemoryStats())
          .live_bytes);
}

// Returns, for each unit, the median times of several rounds.
std::vector<UnitCosts> Medians(
    const std::vector<std::vector<UnitCosts>>& rounds) {
  std::vector<UnitCosts> medians = rounds.back();
  for (size_t unit = 0; unit < medians.size(); ++unit) {
    for (double StageCosts::*field :
         {&StageCosts::forward, &StageCosts::input_grad,
          &StageCosts::weight_grad}) {
      std::vector<double> values;
      for (const auto& round : rounds)
        values.push_back(round[unit].seconds.*field);
      medians[unit].seconds.*field = MedianOf(std::move(values));
    }
  }
  return medians;
}

// Trains the units as the stages of a pipeline, each stage on the whole
// micro-batch before the next one.
class UnitMeter {
 public:
  UnitMeter(const std::vector<std::shared_ptr<nn::Module>>& modules,
            const ProfileRequest& request, int64_t rows)
      : device_(modules.front()->device()),
        inputs_(request.inputs.Slice(0, 0, rows).To(device_)),
        targets_(request.targets.Slice(0, 0, rows).To(device_)),
        recordable_(device_.is_cuda()) {
    const auto rounds = static_cast<size_t>(request.repeats) + 1;
    plan_.training = true;
    plan_.loss = request.loss;
    plan_.micro_batches.assign(rounds, rows);
    plan_.rows = rows * static_cast<int64_t>(rounds);
    StageSpec spec;
    spec.graph = request.graph;
    spec.count = static_cast<int32_t>(modules.size());
    for (const auto& module : modules) {
      recordable_ = recordable_ && WhyNotRecorded(*module, spec).empty();
      stages_.emplace_back(*module, spec, plan_, StageStreams::Current(device_),
                           sums_);
      ++spec.index;
    }
  }

  // Returns the medians over all micro-batches except the first, in which
  // algorithms are chosen. If steps will be recorded, the measurement is, too,
  // so that the host's time does not count.
  std::vector<UnitCosts> Measure() {
    const std::vector<UnitCosts> first = Train(0);
    std::vector<std::vector<UnitCosts>> rounds;
    const auto repeats = static_cast<int>(plan_.micro_batches.size()) - 1;
    if (!recordable_) {
      for (int m = 1; m <= repeats; ++m) rounds.push_back(Train(m));
      return Medians(rounds);
    }
    StepTrace trace({device_});
    trace_ = &trace;
    const Graph graph = Graph::Record({device_}, [&] { Train(1); });
    for (int i = 0; i < repeats; ++i) {
      trace.Begin();
      graph.Replay();
      rounds.push_back(first);
      for (const StepTrace::Span& span : trace.Spans())
        SecondsOf(*span.instruction, rounds.back()) =
            1e-3 * (span.end_ms - span.begin_ms);
    }
    trace_ = nullptr;
    return Medians(rounds);
  }

 private:
  std::vector<UnitCosts> Train(int m) {
    std::vector<UnitCosts> costs(stages_.size());
    Forwards(m, costs);
    Backwards(m, costs);
    return costs;
  }

  void Forwards(int m, std::vector<UnitCosts>& costs) {
    Outputs next = {{inputs_}};
    for (size_t i = 0; i < stages_.size(); ++i) {
      const int stage = static_cast<int>(i);
      const double held = LiveBytes(device_);
      Time({StageOp::kForward, stage, m}, costs, [&] {
        OutputsOfStages outputs =
            stages_[i].Forward(m, {{stage - 1, next}}, targets_);
        next = std::move(outputs[stage + 1]);
      });
      costs[i].held_bytes = std::max(0.0, LiveBytes(device_) - held);
      for (const Tensor& value : next.values)
        costs[i].output_bytes += static_cast<double>(value.nbytes());
    }
  }

  void Backwards(int m, std::vector<UnitCosts>& costs) {
    Values next;
    for (size_t i = stages_.size(); i-- > 0;) {
      const int stage = static_cast<int>(i);
      Time({StageOp::kInputGrad, stage, m}, costs, [&] {
        Parcels gradients = stages_[i].Backward(
            StageOp::kInputGrad, m, {{stage + 1, next}}, /*of_loss=*/Tensor());
        next = std::move(gradients[stage - 1]);
      });
      Time({StageOp::kWeightGrad, stage, m}, costs,
           [&] { stages_[i].WeightGrad(m); });
    }
  }

  template <typename Work>
  void Time(const Instruction& step, std::vector<UnitCosts>& costs,
            const Work& work) {
    if (trace_ != nullptr) {
      return trace_->Time({.name = ToString(step), .instruction = step},
                          CurrentStream(device_), work);
    }
    Synchronize(device_);
    const auto begin = ProfileClock::now();
    work();
    Synchronize(device_);
    const std::chrono::duration<double> took = ProfileClock::now() - begin;
    SecondsOf(step, costs) = took.count();
  }

  static double& SecondsOf(const Instruction& step,
                           std::vector<UnitCosts>& costs) {
    StageCosts& of = costs[static_cast<size_t>(step.stage)].seconds;
    return step.op == StageOp::kForward      ? of.forward
           : step.op == StageOp::kWeightGrad ? of.weight_grad
                                             : of.input_grad;
  }

  const Device device_;
  const Tensor inputs_, targets_;
  StepPlan plan_;
  GradientSums sums_;
  std::deque<StageCompute> stages_;  // a deque, because elements must not move
  bool recordable_;
  StepTrace* trace_ = nullptr;  // set while recording
};

absl::Status CheckRequest(const ProfileRequest& request, size_t units,
                          size_t modules) {
  const auto& [inputs, targets, sizes, loss, repeats, threads, graph] = request;
  if (units == 0 || units != modules || sizes.empty() || repeats < 1 ||
      threads < 0 || loss == Loss::kNone || loss == Loss::kOwn) {
    return absl::InvalidArgumentError(
        "a profile needs units, sizes of micro-batches, a loss that every "
        "worker knows and at least one repeat");
  }
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  for (const Tensor& tensor : {inputs, targets}) {
    if (!tensor.defined() || tensor.rank() == 0 || *least < 1 ||
        tensor.dim(0) < *most) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a profile of micro-batches of ", absl::StrJoin(sizes, ", "),
          " rows needs inputs and targets of as many, got ",
          tensor.defined() ? tensor.shape().ToString() : "(undefined)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<UnitCosts> Profile::At(int64_t micro_batch) const {
  const auto above = std::lower_bound(rows.begin(), rows.end(), micro_batch);
  const bool beyond = above == rows.end();
  const size_t high = static_cast<size_t>(above - rows.begin()) - beyond;
  const bool between = !beyond && high > 0;
  const size_t low = between ? high - 1 : high;
  const auto size = static_cast<double>(micro_batch);
  const auto from = static_cast<double>(rows[low]);
  const auto to = static_cast<double>(rows[high]);
  const double rest = between ? (size - from) / (to - from) : 0;
  const double part = between ? 1 - rest : size / from;
  std::vector<UnitCosts> all;
  for (size_t unit = 0; unit < units.size(); ++unit)
    all.push_back(Mixed(costs[low][unit], part, costs[high][unit], rest));
  return all;
}

absl::StatusOr<Profile> MeasureUnits(
    const std::vector<std::string>& units,
    const std::vector<std::shared_ptr<nn::Module>>& modules,
    const ProfileRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request, units.size(), modules.size()));
  Profile profile;
  profile.units = units;
  for (const auto& module : modules) {
    double bytes = 0;
    for (const Variable& parameter : module->Parameters())
      bytes += static_cast<double>(parameter.tensor().nbytes());
    profile.parameter_bytes.push_back(bytes);
  }
  profile.input_bytes = static_cast<double>(request.inputs.nbytes()) /
                        static_cast<double>(request.inputs.dim(0));
  const ComputeThreadsScope threads(
      request.compute_threads > 0 ? request.compute_threads : ComputeThreads());
  std::vector<int64_t> sizes = request.rows;
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  absl::Status status;
  for (int64_t rows : sizes) {
    status = CatchErrors([&] {
      UnitMeter meter(modules, request, rows);
      profile.costs.insert(profile.costs.begin(), meter.Measure());
      profile.rows.insert(profile.rows.begin(), rows);
    });
    // Smaller ones may have the memory.
    if (!status.ok() && !absl::IsResourceExhausted(status)) break;
  }
  if (profile.rows.empty()) return status;
  if (absl::IsInvalidArgument(status)) {
    profile.least_rows = profile.rows.front();
    return profile;
  }
  if (!absl::IsResourceExhausted(status)) RETURN_IF_ERROR(status);
  return profile;
}

namespace profile_calls {
namespace {

// The size of a large activation.
constexpr int64_t kLargeMessage = 8 << 20;
constexpr int kMessages = 7;

// Measures how long a tensor of `bytes` takes to be sent and acknowledged.
absl::StatusOr<double> RoundTrip(rpc::CallContext& call,
                                 const std::string& worker, int64_t bytes) {
  const Tensor tensor = Tensor::Zeros(
      {bytes}, {.dtype = DType::kU8, .device = call.compute().device});
  std::vector<double> seconds;
  for (int i = 0; i <= kMessages; ++i) {
    const ProfileClock::time_point begin = ProfileClock::now();
    RETURN_IF_ERROR(call.agent()
                        .Async<&Take>(worker, call, tensor)
                        .Await(kNoLimit)
                        .status());
    const std::chrono::duration<double> took = ProfileClock::now() - begin;
    if (i > 0) seconds.push_back(took.count());
  }
  return MedianOf(std::move(seconds));
}

}  // namespace

bool Take(const Tensor& tensor) { return tensor.defined(); }

absl::StatusOr<std::vector<LinkCosts>> MeasureLinks(
    rpc::CallContext& call, const std::vector<std::string>& workers) {
  std::vector<LinkCosts> links;
  for (const std::string& worker : workers) {
    ASSIGN_OR_RETURN(const double small, RoundTrip(call, worker, 1));
    ASSIGN_OR_RETURN(const double large,
                     RoundTrip(call, worker, kLargeMessage));
    links.push_back(
        {small / 2, std::max(0.0, large - small) / double{kLargeMessage}});
  }
  return links;
}

}  // namespace profile_calls

void RegisterLinks(rpc::Registry& registry) {
  registry.AddFunction<&profile_calls::MeasureLinks>()
      .AddFunction<&profile_calls::PlaceHere>()
      .AddFunction<&profile_calls::Take>();
}

absl::StatusOr<std::vector<std::vector<LinkCosts>>> ProfileLinks(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    std::chrono::milliseconds timeout) {
  std::vector<std::vector<LinkCosts>> links;
  for (size_t from = 0; from < workers.size(); ++from) {
    std::vector<std::string> others = workers;
    others.erase(others.begin() + static_cast<long>(from));
    ASSIGN_OR_RETURN(
        std::vector<LinkCosts> measured,
        rpc::OrNameMissing(
            agent.Async<&profile_calls::MeasureLinks>(
                workers[from], rpc::CallOptions{.timeout = timeout}, others),
            "ProfileLinks", "call dist::RegisterLinks(registry) before joining")
            .Await(kNoLimit));
    if (measured.size() != others.size()) {
      return absl::InternalError(absl::StrCat(workers[from], " measured ",
                                              measured.size(), " links of ",
                                              others.size()));
    }
    measured.insert(measured.begin() + static_cast<long>(from), LinkCosts());
    links.push_back(std::move(measured));
  }
  return links;
}

}  // namespace baton::dist
