// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/optimizer.h"

#include <algorithm>
#include <cmath>

#include "absl/functional/function_ref.h"
#include "core/cpu/optimizer.h"
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

void CheckState(const char* op, const Tensor& value, const Tensor& state,
                const char* what) {
  Require(state.defined() && state.shape() == value.shape() &&
              state.dtype() == value.dtype() && SameOrder(state, value),
          op, "expected the ", what, " to lie as the parameter ",
          Name(value.dtype()), value.shape().ToString(), " does");
}

// The gradient in the parameter's order of elements.
Tensor CheckedGrad(const char* op, const Tensor& value, const Tensor& grad) {
  Require(value.dtype() == DType::kF32 || value.dtype() == DType::kF64, op,
          "expected f32 or f64 parameters, got ", Name(value.dtype()));
  Require(value.device().is_cpu(), op, "expected parameters on the CPU, got ",
          value.device().ToString());
  Require(SameOrder(value, value), op,
          "expected a dense parameter, got a view ", value.shape().ToString());
  Require(grad.defined() && grad.shape() == value.shape() &&
              grad.dtype() == value.dtype() && grad.device() == value.device(),
          op, "expected a gradient like the parameter ", Name(value.dtype()),
          value.shape().ToString(), ", got ",
          grad.defined() ? grad.ToString() : std::string("none"));
  if (SameOrder(value, grad)) return grad;
  const Tensor ordered = Tensor::EmptyLike(value);
  ordered.CopyFrom(grad);
  return ordered;
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

SgdCoefficients CoefficientsOf(const SgdOptions& options, bool first) {
  return {.lr = options.lr,
          .momentum = first ? 0 : options.momentum,
          .damped = first ? 1 : 1 - options.dampening,
          .lookahead = options.momentum,
          .weight_decay = options.weight_decay,
          .sign = options.maximize ? -1.0 : 1.0,
          .nesterov = options.nesterov};
}

AdamCoefficients CoefficientsOf(const AdamOptions& options, int64_t step) {
  const auto correction = [step](double beta) {
    return 1 - std::pow(beta, static_cast<double>(step));
  };
  const bool decoupled = options.decoupled_decay;
  return {.keep = decoupled ? 1 - options.lr * options.weight_decay : 1,
          .step_size = options.lr / correction(options.beta1),
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

}  // namespace

void SgdStep(const std::vector<SgdTarget>& targets, const SgdOptions& options) {
  std::vector<Tensor> grads;
  std::vector<int64_t> sizes;
  for (const SgdTarget& target : targets) {
    grads.push_back(CheckedGrad("sgd", target.value, target.grad));
    sizes.push_back(target.value.numel());
    if (options.momentum != 0)
      CheckState("sgd", target.value, target.momentum, "momentum");
  }
  ForEachChunk(sizes, [&](size_t i, int64_t begin, int64_t end) {
    const SgdTarget& target = targets[i];
    cpu::SgdRange(target.value.dtype(), target.value.raw_data(),
                  grads[i].raw_data(),
                  options.momentum != 0 ? Data(target.momentum) : nullptr,
                  begin, end, CoefficientsOf(options, target.first_step));
  });
  for (const SgdTarget& target : targets) {
    target.value.BumpVersion();
    if (options.momentum != 0) target.momentum.BumpVersion();
  }
}

void AdamStep(const std::vector<AdamTarget>& targets,
              const AdamOptions& options) {
  std::vector<Tensor> grads;
  std::vector<int64_t> sizes;
  for (const AdamTarget& target : targets) {
    grads.push_back(CheckedGrad("adam", target.value, target.grad));
    sizes.push_back(target.value.numel());
    CheckState("adam", target.value, target.mean, "mean");
    CheckState("adam", target.value, target.variance, "variance");
    if (options.amsgrad)
      CheckState("adam", target.value, target.max_variance, "max_variance");
  }
  ForEachChunk(sizes, [&](size_t i, int64_t begin, int64_t end) {
    const AdamTarget& target = targets[i];
    cpu::AdamRange(target.value.dtype(), target.value.raw_data(),
                   grads[i].raw_data(), target.mean.raw_data(),
                   target.variance.raw_data(),
                   options.amsgrad ? Data(target.max_variance) : nullptr, begin,
                   end, CoefficientsOf(options, target.step));
  });
  for (const AdamTarget& target : targets) {
    target.value.BumpVersion();
    target.mean.BumpVersion();
    target.variance.BumpVersion();
    if (options.amsgrad) target.max_variance.BumpVersion();
  }
}

}  // namespace baton::ops
