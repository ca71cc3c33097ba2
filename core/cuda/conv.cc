// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/conv.h"

#include <algorithm>
#include <cstdint>

#include "core/cuda/conv_bias.h"
#include "core/cuda/conv_search.h"
#include "core/cuda/elementwise.h"
#include "core/precision.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

// The tensors of a convolution, all dense in `layout`.
struct Operands {
  Tensor x, weight, y;
};

std::array<int64_t, 4> Dims4(const Tensor& tensor) {
  return {tensor.dim(0), tensor.dim(1), tensor.dim(2), tensor.dim(3)};
}

// Returns the alignment of all addresses, up to 16 bytes: cuDNN requires that
// of an element, and uses up to 16 bytes.
int64_t AlignmentOf(const Operands& operands) {
  const auto bits = reinterpret_cast<uintptr_t>(operands.x.raw_data()) |
                    reinterpret_cast<uintptr_t>(operands.weight.raw_data()) |
                    reinterpret_cast<uintptr_t>(operands.y.raw_data()) | 16;
  return static_cast<int64_t>(bits & (~bits + 1));
}

ConvProblem ProblemOf(ConvPass pass, const Operands& operands,
                      const ops::Conv2dOptions& options, MemoryFormat layout) {
  const DType dtype = operands.x.dtype();
  return {.pass = pass,
          .dtype = dtype,
          .x = Dims4(operands.x),
          .weight = Dims4(operands.weight),
          .y = Dims4(operands.y),
          .stride = options.stride,
          .padding = options.padding,
          .dilation = options.dilation,
          .channels_last = layout == MemoryFormat::kChannelsLast,
          .accumulate = false,
          .tf32 = dtype == DType::kF32 && Tf32Allowed(),
          .deterministic = Deterministic(),
          .alignment = AlignmentOf(operands)};
}

ConvOperands Addresses(const Operands& operands) {
  return {.x = operands.x.raw_data(),
          .weight = operands.weight.raw_data(),
          .y = operands.y.raw_data()};
}

void RunPlan(const Launch& launch, const ConvPlan& plan, cudnnHandle_t handle,
             const Operands& operands) {
  const Tensor workspace = Tensor::Empty(
      {plan.workspace_bytes()},
      {.dtype = DType::kU8, .device = Device::Cuda(launch.device())});
  plan.Run(handle, Addresses(operands), workspace.raw_data());
}

void Run(const Launch& launch, const ConvProblem& problem,
         const Operands& operands) {
  cudnnHandle_t handle =
      CudnnHandle(OpOf(problem.pass), launch.device(), launch.stream());
  RunPlan(launch,
          *ConvPlanFor(launch, problem, handle, Addresses(operands), Tensor()),
          handle, operands);
}

// Adds the gradient of x to the output.
void AddInputGradient(const Launch& launch, ConvProblem problem,
                      const Operands& operands) {
  problem.accumulate = true;
  cudnnHandle_t handle =
      CudnnHandle(OpOf(problem.pass), launch.device(), launch.stream());
  const Tensor& sum = operands.x;
  Operands trial = operands;
  if (WouldTry(launch, problem)) {
    trial.x = Tensor::Zeros({sum.numel()},
                            {.dtype = sum.dtype(), .device = sum.device()});
  }
  const auto plan =
      ConvPlanFor(launch, problem, handle, Addresses(trial), trial.x);
  if (plan->accumulates()) return RunPlan(launch, *plan, handle, operands);
  Operands apart = operands;
  apart.x = Tensor::EmptyLike(sum);
  RunPlan(launch, *plan, handle, apart);
  Binary(BinaryOp::kAdd, sum, sum, apart.x);
}

// Returns channels-last if both tensors are dense in it. A tensor of one pixel
// or one channel is dense in both layouts, so the other tensor decides.
MemoryFormat LayoutOf(const Tensor& a, const Tensor& b) {
  constexpr MemoryFormat kLast = MemoryFormat::kChannelsLast;
  return a.IsContiguous(kLast) && b.IsContiguous(kLast)
             ? kLast
             : MemoryFormat::kContiguous;
}

// Returns `wished` if `sum` is dense in it, otherwise the other layout.
MemoryFormat DenseLayoutOf(const char* op, const Tensor& sum,
                           MemoryFormat wished) {
  if (sum.IsContiguous(wished)) return wished;
  const MemoryFormat other = wished == MemoryFormat::kContiguous
                                 ? MemoryFormat::kChannelsLast
                                 : MemoryFormat::kContiguous;
  Require(sum.IsContiguous(other), op, "expected a dense gradient to add to");
  return other;
}

// Returns the shape of y; core/ops/conv.cc has checked that it fits.
Shape OutputShape(const Tensor& x, const Tensor& weight,
                  const ops::Conv2dOptions& options) {
  Dims y = {x.dim(0), weight.dim(0)};
  for (size_t i = 0; i < 2; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const int64_t reach = options.dilation[i] * (weight.dim(axis) - 1) + 1;
    y.push_back(
        (x.dim(axis) + 2 * options.padding[i] - reach) / options.stride[i] + 1);
  }
  return Shape(y);
}

}  // namespace

Tensor ConvForward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const ops::Conv2dOptions& options) {
  const Tensor y = Tensor::Empty(
      OutputShape(x, weight, options),
      {.dtype = x.dtype(), .device = x.device(), .format = x.SuggestFormat()});
  const MemoryFormat layout = LayoutOf(x, y);
  const Operands operands = {x.Contiguous(layout), weight.Contiguous(layout),
                             y};
  {
    const Launch launch("conv2d", {&y}, {&operands.x, &operands.weight});
    Run(launch, ProblemOf(ConvPass::kForward, operands, options, layout),
        operands);
  }
  if (bias.defined()) AddChannelBias(y, bias.Contiguous());
  return y;
}

Tensor ConvBackwardInput(const Tensor& dy, const Tensor& weight,
                         const Shape& x_shape,
                         const ops::Conv2dOptions& options) {
  const Tensor dx = Tensor::Empty(x_shape, {.dtype = dy.dtype(),
                                            .device = dy.device(),
                                            .format = dy.SuggestFormat()});
  const MemoryFormat layout = LayoutOf(dy, dx);
  const Operands operands = {dx, weight.Contiguous(layout),
                             dy.Contiguous(layout)};
  const Launch launch("conv2d_backward_input", {&dx},
                      {&operands.weight, &operands.y});
  Run(launch, ProblemOf(ConvPass::kBackwardInput, operands, options, layout),
      operands);
  return dx;
}

void ConvAddBackwardInput(const Tensor& dy, const Tensor& weight,
                          const ops::Conv2dOptions& options, const Tensor& dx) {
  constexpr char kOp[] = "conv2d_backward_input";
  const MemoryFormat layout = DenseLayoutOf(kOp, dx, LayoutOf(dy, dx));
  const Operands operands = {dx, weight.Contiguous(layout),
                             dy.Contiguous(layout)};
  const Launch launch(kOp, {&dx}, {&operands.weight, &operands.y});
  AddInputGradient(
      launch, ProblemOf(ConvPass::kBackwardInput, operands, options, layout),
      operands);
  dx.BumpVersion();
}

Tensor ConvBackwardWeight(const Tensor& dy, const Tensor& x,
                          const Shape& weight_shape,
                          const ops::Conv2dOptions& options,
                          MemoryFormat order) {
  const MemoryFormat layout =
      x.IsContiguous() ? LayoutOf(x, dy) : LayoutOf(x, x);
  const TensorOptions place = {.dtype = x.dtype(), .device = x.device()};
  TensorOptions ordered = place;
  ordered.format = order;
  Tensor dweight = Tensor::Empty(weight_shape, ordered);
  if (!dweight.IsContiguous(layout)) {
    ordered.format = layout;
    dweight = Tensor::Empty(weight_shape, ordered);
  }
  const Operands operands = {x.Contiguous(layout), dweight,
                             dy.Contiguous(layout)};
  {
    const Launch launch("conv2d_backward_weight", {&dweight},
                        {&operands.x, &operands.y});
    Run(launch, ProblemOf(ConvPass::kBackwardWeight, operands, options, layout),
        operands);
  }
  return dweight.Contiguous(order);
}

}  // namespace baton::cuda
