// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/optimizer.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <variant>

#include "absl/functional/function_ref.h"
#include "core/cpu/optimizer.h"
#include "core/cuda/optimizer.h"
#include "core/ops/rows.h"
#include "core/parallel.h"

namespace baton::ops {
namespace {

constexpr int64_t kChunk = 16384;  // elements; stays in the L2 cache

// Returns true if both are dense and have the same memory order.
bool SameOrder(const Tensor& a, const Tensor& b) {
  for (MemoryFormat format :
       {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    if (a.IsContiguous(format) && b.IsContiguous(format)) return true;
  }
  return false;
}

bool IsLower(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16;
}

bool LiesAs(const Tensor& value, const Tensor& x) {
  return x.defined() && x.shape() == value.shape() &&
         x.device() == value.device() && SameOrder(x, value);
}

void CheckState(const char* op, const Tensor& value, const Tensor& state,
                const char* what) {
  Require(LiesAs(value, state) && state.dtype() == value.dtype(), op,
          "expected the ", what, " to lie as the parameter ",
          Name(value.dtype()), value.shape().ToString(), " does");
}

void CheckScalar(const char* op, const Tensor& value, const Tensor& scalar,
                 DType dtype, const char* what) {
  Require(
      !scalar.defined() || (scalar.numel() == 1 && scalar.dtype() == dtype &&
                            scalar.device() == value.device()),
      op, "expected a ", what, " of ", Name(dtype), " on ",
      value.device().ToString());
}

// Returns the gradient in the parameter's memory order.
Tensor CheckedGrad(const char* op, const StepTarget& target) {
  const auto& [value, grad] = std::tie(target.value, target.grad);
  Require(value.dtype() == DType::kF32 || value.dtype() == DType::kF64, op,
          "expected f32 or f64 parameters, got ", Name(value.dtype()));
  Require(SameOrder(value, value), op,
          "expected a dense parameter, got a view ", value.shape().ToString());
  const bool fits = grad.defined() &&
                    (grad.dtype() == value.dtype() ||
                     (value.dtype() == DType::kF32 && IsLower(grad.dtype())));
  const bool of_rows = target.rows.defined();
  Require(fits && (of_rows || grad.shape() == value.shape()) &&
              grad.device() == value.device(),
          op, "expected a gradient like the parameter ", Name(value.dtype()),
          value.shape().ToString(), ", got ",
          grad.defined() ? grad.ToString() : std::string("none"));
  if (of_rows) {
    RequireRows(op, value.shape(), {target.rows, grad});
    Require(value.IsContiguous() && target.rows.IsContiguous(), op,
            "expected a parameter and numbers of rows that are contiguous");
    return grad.Contiguous();
  }
  if (SameOrder(value, grad)) return grad;
  Tensor ordered =
      Tensor::Empty(value.shape(), {.dtype = grad.dtype(),
                                    .device = grad.device(),
                                    .format = value.SuggestFormat()});
  ordered.CopyFrom(grad);
  return ordered;
}

void CheckLowered(const char* op, const Tensor& value, const Tensor& lowered) {
  if (!lowered.defined()) return;
  Require(value.dtype() == DType::kF32 && IsLower(lowered.dtype()) &&
              LiesAs(value, lowered),
          op, "expected the lowered copy of an f32 parameter ",
          value.shape().ToString(), " to be bf16 or f16 and lie as it, got ",
          lowered.ToString());
}

// Returns the group with gradients in the memory order of the values and
// without state that its rule does not need.
StepGroup Checked(const char* op, StepGroup group) {
  for (StepTarget& target : group.targets) {
    const Tensor& value = target.value;
    target.grad = CheckedGrad(op, target);
    CheckLowered(op, value, target.lowered);
    CheckScalar(op, value, target.rate, DType::kF64, "rate");
    CheckScalar(op, value, target.count, DType::kI64, "count");
    CheckScalar(op, value, target.scale, DType::kF64, "scale");
    CheckScalar(op, value, target.skip, DType::kF32, "skip");
    const auto check_state = [&](const auto& rule) {
      Require(!target.rows.defined() || target.rows_apart || rule.StepsRows(),
              op,
              "such a step cannot be of some rows alone (nn::Embedding's "
              "sparse): take SparseAdam, or Sgd or Adagrad without momentum "
              "and weight decay");
      target.state.resize(rule.kSlots);
      size_t i = 0;
      for (const StateSlot& slot : rule.Slots()) {
        Tensor& state = target.state[i++];
        if (slot.name == nullptr) state = Tensor();
        if (slot.name != nullptr) CheckState(op, value, state, slot.name);
      }
    };
    std::visit(check_state, group.rule);
  }
  return group;
}

// Groups the targets by device; the CPU comes first.
std::map<int, StepGroup> ByDevice(const StepGroup& group) {
  std::map<int, StepGroup> parts;
  for (const StepTarget& target : group.targets) {
    const Device device = target.value.device();
    StepGroup& part = parts[device.is_cpu() ? -1 : device.index()];
    part.rule = group.rule;
    part.targets.push_back(target);
  }
  return parts;
}

double RateOf(const Tensor& rate, const StepRule& rule) {
  if (rate.defined()) return *rate.data<double>();
  return std::visit([](const auto& options) { return options.lr; }, rule);
}

// Returns true if the step must not change the group, which is on the CPU.
bool Skips(const StepGroup& group) {
  const Tensor& skip = group.targets.front().skip;
  return skip.defined() && *skip.data<float>() != 0;
}

void ForEachWritten(const std::vector<StepGroup>& groups,
                    void (Tensor::*apply)() const) {
  for (const StepGroup& group : groups) {
    for (const StepTarget& target : group.targets) {
      for (const Tensor* x : {&target.value, &target.lowered, &target.count})
        if (x->defined()) (x->*apply)();
      for (const Tensor& x : target.state)
        if (x.defined()) (x.*apply)();
    }
  }
}

// Calls body(i, begin, end) for chunks of the gradients of all targets, in
// parallel.
void ForEachChunk(const std::vector<StepTarget>& targets,
                  absl::FunctionRef<void(size_t, int64_t, int64_t)> body) {
  struct Chunk {
    size_t target;
    int64_t begin;
  };
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < targets.size(); ++i) {
    for (int64_t begin = 0; begin < targets[i].grad.numel(); begin += kChunk)
      chunks.push_back({i, begin});
  }
  ParallelFor(
      static_cast<int64_t>(chunks.size()), 1, [&](int64_t first, int64_t last) {
        for (int64_t c = first; c < last; ++c) {
          const Chunk& chunk = chunks[static_cast<size_t>(c)];
          const int64_t size = targets[chunk.target].grad.numel();
          body(chunk.target, chunk.begin, std::min(chunk.begin + kChunk, size));
        }
      });
}

cpu::StepArrays ArraysOf(const StepTarget& target) {
  const auto data = [](const Tensor& x) {
    return x.defined() ? x.raw_data() : nullptr;
  };
  cpu::StepArrays arrays{.dtype = target.value.dtype(),
                         .value = target.value.raw_data(),
                         .grad_dtype = target.grad.dtype(),
                         .grad = target.grad.raw_data()};
  for (size_t i = 0; i < target.state.size(); ++i)
    arrays.state[i] = data(target.state[i]);
  if (target.lowered.defined()) {
    arrays.lowered_dtype = target.lowered.dtype();
    arrays.lowered = target.lowered.raw_data();
  }
  return arrays;
}

// Steps by elements begin .. end of the gradient.
void StepPart(const StepTarget& target, const StepRule& rule,
              const cpu::StepArguments& arguments, int64_t begin, int64_t end) {
  const cpu::StepArrays arrays = ArraysOf(target);
  if (!target.rows.defined())
    return cpu::StepRange(rule, {&arrays, 1}, arguments, begin, end, begin);
  const int64_t width = target.grad.dim(1);
  const int64_t* rows = target.rows.data<int64_t>();
  for (int64_t at = begin; at < end;) {
    const int64_t row = at / width;
    const int64_t stop = std::min(end, (row + 1) * width);
    const int64_t ahead = (rows[row] - row) * width;
    if (rows[row] >= 0)
      cpu::StepRange(rule, {&arrays, 1}, arguments, at + ahead, stop + ahead,
                     at);
    at = stop;
  }
}

void StepOnCpu(const StepGroup& group, double limit) {
  if (Skips(group)) return;
  std::vector<int64_t> steps;
  for (const StepTarget& target : group.targets) {
    steps.push_back(target.count.defined() ? ++*target.count.data<int64_t>()
                                           : target.step);
  }
  ForEachChunk(group.targets, [&](size_t i, int64_t begin, int64_t end) {
    const StepTarget& target = group.targets[i];
    const double scale =
        target.scale.defined() ? *target.scale.data<double>() : 1;
    StepPart(target, group.rule,
             {.rate = RateOf(target.rate, group.rule),
              .step = steps[i],
              .limit = limit,
              .scale = scale},
             begin, end);
  });
}

}  // namespace

void OptimizerStep(const std::vector<StepGroup>& groups, double limit) {
  std::vector<StepGroup> checked;
  for (const StepGroup& group : groups)
    checked.push_back(Checked("optimizer", group));
  ForEachWritten(checked, &Tensor::PrepareWrite);
  for (const StepGroup& group : checked) {
    for (const auto& [device, part] : ByDevice(group)) {
      device < 0 ? StepOnCpu(part, limit) : cuda::OptimizerStep(part, limit);
    }
  }
  ForEachWritten(checked, &Tensor::BumpVersion);
}

}  // namespace baton::ops
