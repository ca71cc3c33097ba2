// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/profile.h"

#include <algorithm>
#include <deque>
#include <map>

#include "absl/algorithm/container.h"
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

Outputs OnDevice(Outputs outputs, Device device) {
  for (Tensor& value : outputs.values)
    if (value.defined()) value = value.To(device);
  return outputs;
}

// Returns what a later unit may send back.
Values GradientsOf(const Outputs& outputs) {
  Values gradients;
  for (size_t i = 0; i < outputs.values.size(); ++i) {
    const Tensor& value = outputs.values[i];
    const bool wants =
        value.defined() && IsFloating(value.dtype()) &&
        !absl::c_linear_search(outputs.constants, static_cast<int32_t>(i));
    gradients.push_back(wants ? Tensor::ZerosLike(value) : Tensor());
  }
  return gradients;
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

// Trains some of a model's units as the stages of a pipeline, each stage on the
// whole micro-batch before the next one.
class UnitMeter {
 public:
  // `modules` are those of the units from `first` on, out of `units`, and
  // `inputs` what the first of them gets.
  UnitMeter(const std::vector<std::shared_ptr<nn::Module>>& modules,
            size_t first, size_t units, const ProfileRequest& request,
            int64_t rows, const Outputs& inputs)
      : device_(modules.front()->device()),
        first_(static_cast<int>(first)),
        is_last_(first + modules.size() == units),
        inputs_(OnDevice(inputs, device_)),
        targets_(request.targets.Slice(0, 0, rows).To(device_)),
        recordable_(device_.is_cuda()) {
    const auto rounds = static_cast<size_t>(request.repeats) + 1;
    plan_.training = true;
    plan_.loss = request.loss;
    plan_.micro_batches.assign(rounds, rows);
    plan_.rows = rows * static_cast<int64_t>(rounds);
    StageSpec spec;
    spec.graph = request.graph;
    spec.index = static_cast<int32_t>(first);
    spec.count = static_cast<int32_t>(units);
    for (const auto& module : modules) {
      recordable_ = recordable_ && WhyNotRecorded(*module, spec).empty();
      stages_.emplace_back(*module, spec, plan_, StageStreams::Current(device_),
                           sums_);
      ++spec.index;
    }
  }

  // What the last of the units put out when it was last measured.
  const Outputs& outputs() const { return outputs_; }

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
    Outputs next = inputs_;
    for (size_t i = 0; i < stages_.size(); ++i) {
      const int stage = first_ + static_cast<int>(i);
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
    outputs_ = std::move(next);
  }

  void Backwards(int m, std::vector<UnitCosts>& costs) {
    Values next = is_last_ ? Values() : GradientsOf(outputs_);
    for (size_t i = stages_.size(); i-- > 0;) {
      const int stage = first_ + static_cast<int>(i);
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

  double& SecondsOf(const Instruction& step,
                    std::vector<UnitCosts>& costs) const {
    StageCosts& of = costs[static_cast<size_t>(step.stage - first_)].seconds;
    return step.op == StageOp::kForward      ? of.forward
           : step.op == StageOp::kWeightGrad ? of.weight_grad
                                             : of.input_grad;
  }

  const Device device_;
  const int first_;
  const bool is_last_;
  const Outputs inputs_;
  const Tensor targets_;
  Outputs outputs_;
  StepPlan plan_;
  GradientSums sums_;
  std::deque<StageCompute> stages_;  // a deque, because elements must not move
  bool recordable_;
  StepTrace* trace_ = nullptr;  // set while recording
};

absl::Status CheckRequest(const ProfileRequest& request, size_t units) {
  const auto& [inputs, targets, sizes, loss, repeats, threads, graph] = request;
  if (units == 0 || sizes.empty() || repeats < 1 || threads < 0 ||
      loss == Loss::kNone || loss == Loss::kOwn) {
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

// Measures as many units at a time as the device has memory for.
class Profiler {
 public:
  Profiler(const std::vector<std::string>& units, const MakeUnit& make,
           const ProfileRequest& request)
      : make_(make), request_(request) {
    profile_.units = units;
    profile_.input_bytes = static_cast<double>(request.inputs.nbytes()) /
                           static_cast<double>(request.inputs.dim(0));
    for (int64_t rows : request.rows)
      sizes_[rows].inputs = {{request.inputs.Slice(0, 0, rows)}};
  }

  absl::StatusOr<Profile> Measure() {
    RETURN_IF_ERROR(Measure(0, profile_.units.size()));
    for (auto& [rows, size] : sizes_) {
      profile_.rows.push_back(rows);
      profile_.costs.push_back(std::move(size.costs));
    }
    return std::move(profile_);
  }

 private:
  // What is known of micro-batches of one size.
  struct Size {
    std::vector<UnitCosts> costs = {};  // of the units that were measured
    Outputs inputs = {};                // of the next unit
  };
  using Sizes = std::map<int64_t, Size>;  // by rows

  absl::Status Measure(size_t begin, size_t end) {
    const absl::Status status = MeasureTogether(begin, end);
    if (!absl::IsResourceExhausted(status) || end - begin == 1) return status;
    const size_t middle = begin + (end - begin) / 2;
    RETURN_IF_ERROR(Measure(begin, middle));
    return Measure(middle, end);
  }

  // Changes nothing if it returns an error.
  absl::Status MeasureTogether(size_t begin, size_t end) {
    std::vector<std::shared_ptr<nn::Module>> modules;
    std::vector<double> bytes = profile_.parameter_bytes;
    for (size_t unit = begin; unit < end; ++unit) {
      ASSIGN_OR_RETURN(modules.emplace_back(),
                       CatchErrors([&] { return make_(unit); }));
      bytes.push_back(0);
      for (const Variable& parameter : modules.back()->Parameters())
        bytes.back() += static_cast<double>(parameter.tensor().nbytes());
    }
    Sizes measured;
    absl::Status status;
    for (auto size = sizes_.rbegin(); size != sizes_.rend(); ++size) {
      status = CatchErrors([&] {
        measured[size->first] =
            Measured(modules, begin, size->first, size->second);
      });
      if (status.ok()) continue;
      // Smaller sizes or fewer units may have the memory.
      if (!absl::IsResourceExhausted(status)) break;
      if (modules.size() > 1) return status;
    }
    if (measured.empty()) return status;
    if (absl::IsInvalidArgument(status)) {
      profile_.least_rows =
          std::max(profile_.least_rows, measured.begin()->first);
    } else if (!absl::IsResourceExhausted(status)) {
      RETURN_IF_ERROR(status);
    }
    sizes_ = std::move(measured);
    profile_.parameter_bytes = std::move(bytes);
    return absl::OkStatus();
  }

  Size Measured(const std::vector<std::shared_ptr<nn::Module>>& modules,
                size_t begin, int64_t rows, const Size& before) const {
    const size_t units = profile_.units.size();
    UnitMeter meter(modules, begin, units, request_, rows, before.inputs);
    Size after{.costs = before.costs};
    for (const UnitCosts& costs : meter.Measure()) after.costs.push_back(costs);
    if (begin + modules.size() < units)
      after.inputs = OnDevice(meter.outputs(), Device::Cpu());
    return after;
  }

  const MakeUnit& make_;
  const ProfileRequest& request_;
  Profile profile_;
  Sizes sizes_;
};

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

absl::StatusOr<Profile> MeasureUnits(const std::vector<std::string>& units,
                                     const MakeUnit& make,
                                     const ProfileRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request, units.size()));
  const ComputeThreadsScope threads(
      request.compute_threads > 0 ? request.compute_threads : ComputeThreads());
  return Profiler(units, make, request).Measure();
}

}  // namespace baton::dist
