// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "absl/functional/function_ref.h"
#include "core/cpu/optimizer.h"
#include "core/cuda/optimizer.h"
#include "core/parallel.h"

namespace baton::ops {
namespace {

constexpr int64_t kChunk = 16384;  // elements; stays in the L2 cache

// True when both lie densely in memory in the same order of elements.
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

// The gradient in the parameter's order of elements.
Tensor CheckedGrad(const char* op, const Tensor& value, const Tensor& grad) {
  Require(value.dtype() == DType::kF32 || value.dtype() == DType::kF64, op,
          "expected f32 or f64 parameters, got ", Name(value.dtype()));
  Require(SameOrder(value, value), op,
          "expected a dense parameter, got a view ", value.shape().ToString());
  const bool fits = grad.defined() &&
                    (grad.dtype() == value.dtype() ||
                     (value.dtype() == DType::kF32 && IsLower(grad.dtype())));
  Require(
      fits && grad.shape() == value.shape() && grad.device() == value.device(),
      op, "expected a gradient like the parameter ", Name(value.dtype()),
      value.shape().ToString(), ", got ",
      grad.defined() ? grad.ToString() : std::string("none"));
  if (SameOrder(value, grad)) return grad;
  Tensor ordered =
      Tensor::Empty(value.shape(), {.dtype = grad.dtype(),
                                    .device = grad.device(),
                                    .format = value.SuggestFormat()});
  ordered.CopyFrom(grad);
  return ordered;
}

// What targets of both kinds have in common. Returns them with gradients in
// their values' order.
template <typename Target>
std::vector<Target> Checked(const char* op,
                            const std::vector<Target>& targets) {
  std::vector<Target> checked = targets;
  for (Target& target : checked) {
    const Tensor& value = target.value;
    target.grad = CheckedGrad(op, value, target.grad);
    if (target.lowered.defined()) {
      Require(value.dtype() == DType::kF32 && IsLower(target.lowered.dtype()) &&
                  LiesAs(value, target.lowered),
              op, "expected the lowered copy of an f32 parameter ",
              value.shape().ToString(),
              " to be bf16 or f16 and lie as it, got ",
              target.lowered.ToString());
    }
    CheckScalar(op, value, target.rate, DType::kF64, "rate");
    CheckScalar(op, value, target.count, DType::kI64, "count");
    CheckScalar(op, value, target.skip, DType::kF32, "skip");
  }
  return checked;
}

// The targets by device; the CPU's is the first group.
template <typename Target>
std::map<int, std::vector<Target>> ByDevice(
    const std::vector<Target>& targets) {
  std::map<int, std::vector<Target>> groups;
  for (const Target& target : targets) {
    const Device device = target.value.device();
    groups[device.is_cpu() ? -1 : device.index()].push_back(target);
  }
  return groups;
}

double RateOf(const Tensor& rate, double lr) {
  return rate.defined() ? *rate.data<double>() : lr;
}

// Whether the CPU's targets are to be left alone.
template <typename Target>
bool Skips(const std::vector<Target>& targets) {
  const Tensor& skip = targets.front().skip;
  return skip.defined() && *skip.data<float>() != 0;
}

// Counts a step, if the target counts. The number of this one.
template <typename Target>
int64_t Count(const Target& target, int64_t otherwise) {
  return target.count.defined() ? ++*target.count.template data<int64_t>()
                                : otherwise;
}

// The value where somebody else wrote its lowered copy.
template <typename Target>
void TakeBack(const Target& target, int64_t begin, int64_t end) {
  if (target.lowered.defined()) {
    cpu::TakeBackRange(target.lowered.dtype(), target.value.raw_data(),
                       target.lowered.raw_data(), begin, end);
  }
}

template <typename Target>
void Lower(const Target& target, int64_t begin, int64_t end) {
  if (target.lowered.defined()) {
    cpu::LowerRange(target.lowered.dtype(), target.lowered.raw_data(),
                    target.value.raw_data(), begin, end);
  }
}

// What a step writes, beside what is null or undefined.
std::array<const Tensor*, 4> WrittenTo(const SgdTarget& target,
                                       const SgdOptions& options) {
  return {&target.value, &target.lowered, &target.count,
          options.momentum != 0 ? &target.momentum : nullptr};
}
std::array<const Tensor*, 6> WrittenTo(const AdamTarget& target,
                                       const AdamOptions& options) {
  return {&target.value,    &target.mean,
          &target.variance, &target.lowered,
          &target.count,    options.amsgrad ? &target.max_variance : nullptr};
}

template <typename Target, typename Options>
void ForEachWritten(const std::vector<Target>& targets, const Options& options,
                    void (Tensor::*apply)() const) {
  for (const Target& target : targets) {
    for (const Tensor* x : WrittenTo(target, options)) {
      if (x != nullptr && x->defined()) (x->*apply)();
    }
  }
}

template <typename Target>
std::vector<int64_t> SizesOf(const std::vector<Target>& targets) {
  std::vector<int64_t> sizes;
  for (const Target& target : targets) sizes.push_back(target.value.numel());
  return sizes;
}

// Calls body(i, begin, end) for parts of all targets' elements.
void ForEachChunk(const std::vector<int64_t>& sizes,
                  absl::FunctionRef<void(size_t, int64_t, int64_t)> body) {
  struct Chunk {
    size_t target;
    int64_t begin;
  };
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (int64_t begin = 0; begin < sizes[i]; begin += kChunk)
      chunks.push_back({i, begin});
  }
  ParallelFor(static_cast<int64_t>(chunks.size()), 1,
              [&](int64_t first, int64_t last) {
                for (int64_t c = first; c < last; ++c) {
                  const Chunk& chunk = chunks[static_cast<size_t>(c)];
                  body(chunk.target, chunk.begin,
                       std::min(chunk.begin + kChunk, sizes[chunk.target]));
                }
              });
}

SgdCoefficients CoefficientsOf(const SgdOptions& options, double lr,
                               bool first) {
  return {.lr = lr,
          .momentum = first ? 0 : options.momentum,
          .damped = first ? 1 : 1 - options.dampening,
          .lookahead = options.momentum,
          .weight_decay = options.weight_decay,
          .sign = options.maximize ? -1.0 : 1.0,
          .nesterov = options.nesterov};
}

AdamCoefficients CoefficientsOf(const AdamOptions& options, double lr,
                                int64_t step) {
  const auto correction = [step](double beta) {
    return 1 - std::pow(beta, static_cast<double>(step));
  };
  const bool decoupled = options.decoupled_decay;
  return {.keep = decoupled ? 1 - lr * options.weight_decay : 1,
          .step_size = lr / correction(options.beta1),
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .variance_scale = std::sqrt(correction(options.beta2)),
          .eps = options.eps,
          .weight_decay = decoupled ? 0 : options.weight_decay,
          .sign = options.maximize ? -1.0 : 1.0};
}

void* Data(const Tensor& tensor) {
  return tensor.defined() ? tensor.raw_data() : nullptr;
}

void StepOnCpu(const std::vector<SgdTarget>& targets,
               const SgdOptions& options) {
  if (Skips(targets)) return;
  std::vector<SgdCoefficients> coefficients;
  for (const SgdTarget& target : targets) {
    Count(target, 0);
    coefficients.push_back(CoefficientsOf(
        options, RateOf(target.rate, options.lr), target.first_step));
  }
  ForEachChunk(SizesOf(targets), [&](size_t i, int64_t begin, int64_t end) {
    const SgdTarget& target = targets[i];
    TakeBack(target, begin, end);
    cpu::SgdRange(target.value.dtype(), target.value.raw_data(),
                  {target.grad.dtype(), target.grad.raw_data()},
                  options.momentum != 0 ? Data(target.momentum) : nullptr,
                  begin, end, coefficients[i]);
    Lower(target, begin, end);
  });
}

void StepOnCpu(const std::vector<AdamTarget>& targets,
               const AdamOptions& options) {
  if (Skips(targets)) return;
  std::vector<AdamCoefficients> coefficients;
  for (const AdamTarget& target : targets) {
    coefficients.push_back(CoefficientsOf(
        options, RateOf(target.rate, options.lr), Count(target, target.step)));
  }
  ForEachChunk(SizesOf(targets), [&](size_t i, int64_t begin, int64_t end) {
    const AdamTarget& target = targets[i];
    TakeBack(target, begin, end);
    cpu::AdamRange(target.value.dtype(), target.value.raw_data(),
                   {target.grad.dtype(), target.grad.raw_data()},
                   target.mean.raw_data(), target.variance.raw_data(),
                   options.amsgrad ? Data(target.max_variance) : nullptr, begin,
                   end, coefficients[i]);
    Lower(target, begin, end);
  });
}

}  // namespace

void SgdStep(const std::vector<SgdTarget>& targets, const SgdOptions& options) {
  const std::vector<SgdTarget> checked = Checked("sgd", targets);
  for (const SgdTarget& target : checked) {
    if (options.momentum != 0)
      CheckState("sgd", target.value, target.momentum, "momentum");
  }
  ForEachWritten(checked, options, &Tensor::PrepareWrite);
  for (const auto& [device, group] : ByDevice(checked)) {
    device < 0 ? StepOnCpu(group, options) : cuda::SgdStep(group, options);
  }
  ForEachWritten(checked, options, &Tensor::BumpVersion);
}

void AdamStep(const std::vector<AdamTarget>& targets,
              const AdamOptions& options) {
  const std::vector<AdamTarget> checked = Checked("adam", targets);
  for (const AdamTarget& target : checked) {
    CheckState("adam", target.value, target.mean, "mean");
    CheckState("adam", target.value, target.variance, "variance");
    if (options.amsgrad)
      CheckState("adam", target.value, target.max_variance, "max_variance");
  }
  ForEachWritten(checked, options, &Tensor::PrepareWrite);
  for (const auto& [device, group] : ByDevice(checked)) {
    device < 0 ? StepOnCpu(group, options) : cuda::AdamStep(group, options);
  }
  ForEachWritten(checked, options, &Tensor::BumpVersion);
}

}  // namespace baton::ops
