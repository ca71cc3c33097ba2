// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/loss.h"

#include "core/cpu/loss.h"
#include "core/cpu/reduce.h"
#include "core/cpu/softmax.h"
#include "core/cuda/loss.h"
#include "core/cuda/reduce.h"
#include "core/cuda/softmax.h"
#include "core/dtype_visit.h"
#include "core/ops/arithmetic.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"
#include "core/ops/reduce.h"

namespace baton::ops {
namespace {

void RequireLabelsInRange(const char* op, const Tensor& labels, int64_t classes,
                          int64_t ignored) {
  // Checking labels on a GPU would have to wait for the GPU; its kernels check
  // them instead.
  if (labels.device().is_cuda()) return;
  const Tensor dense = labels.Contiguous();
  const int64_t* label = dense.data<int64_t>();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    Require((label[i] >= 0 && label[i] < classes) || label[i] == ignored, op,
            "label ", label[i], " at ", i, " is outside [0, ", classes, ")");
  }
}

// Reshapes [..., C] to [rows, C], dense.
Tensor LogitRows(const Tensor& x, const Tensor& labels) {
  return x.Contiguous().Reshape({labels.numel(), x.dim(-1)});
}

ClassLossOptions Dense(ClassLossOptions options) {
  if (options.weight.defined()) options.weight = options.weight.Contiguous();
  return options;
}

void RequireMseArguments(const char* op, const Tensor& x,
                         const Tensor& target) {
  RequireOneDevice(op, x, target);
  RequireFloating(op, x);
  RequireSameDType(op, x, target);
  RequireSameShape(op, x, target);
}

// Returns the gradient of a loss in the form that the kernels of `x` read.
Tensor LossGradient(const char* op, const Tensor& dy, const Tensor& x) {
  Require(dy.numel() == 1, op, "expected dy of one element, got ",
          dy.shape().ToString());
  return x.device().is_cpu() ? dy : dy.To(x.dtype());
}

// Checks only on the CPU; PyTorch's check waits for a GPU's values.
void RequireProbabilities(const char* op, const Tensor& x) {
  if (x.device().is_cuda()) return;
  const Tensor dense = x.Contiguous();
  VisitFloating(op, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* values = dense.data<T>();
    for (int64_t i = 0; i < dense.numel(); ++i) {
      const auto value = Convert<double>(values[i]);
      Require(value >= 0 && value <= 1, op, "probability ", value, " at ", i,
              " is outside [0, 1]");
    }
  });
}

}  // namespace

void RequireClasses(const char* op, const Tensor& classes, const Tensor& labels,
                    const ClassLossOptions& options) {
  RequireOneDevice(op, classes, labels);
  RequireFloating(op, classes);
  RequireDType(op, "labels", labels, DType::kI64);
  Require(classes.rank() >= 1, op, "expected logits [..., C], got ",
          classes.shape().ToString());
  const Shape leading(Dims(classes.shape().begin(), classes.shape().end() - 1));
  Require(labels.shape() == leading, op, "expected labels ", leading.ToString(),
          ", got ", labels.shape().ToString());
  Require(options.label_smoothing >= 0 && options.label_smoothing <= 1, op,
          "label smoothing ", options.label_smoothing, " is outside [0, 1]");
  Require(options.reduction != Reduction::kBatchMean, op,
          "a batch mean is for KL divergence alone");
  RequireLabelsInRange(op, labels, classes.dim(-1), options.ignore_index);
  const Tensor& weight = options.weight;
  if (!weight.defined()) return;
  RequireOneDevice(op, classes, weight);
  RequireSameDType(op, classes, weight);
  Require(weight.shape() == Shape({classes.dim(-1)}), op,
          "expected a weight for each of ", classes.dim(-1), " classes, got ",
          weight.shape().ToString());
}

CrossEntropyResult CrossEntropy(const Tensor& logits, const Tensor& labels,
                                const ClassLossOptions& options) {
  RequireClasses("cross_entropy", logits, labels, options);
  const Tensor from = LogitRows(logits, labels);
  const DType sums = logits.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  // The losses of the rows, and their weights in a mean.
  const Tensor parts = Tensor::Empty(
      {2, labels.numel()}, {.dtype = sums, .device = logits.device()});
  const Tensor log_softmax = Tensor::EmptyLike(from);
  KernelFor(from, cpu::CrossEntropy, cuda::CrossEntropy)(
      parts, log_softmax, from, labels.Contiguous().Flatten(), Dense(options));
  CrossEntropyResult result{.loss = parts.Select(0, 0),
                            .log_softmax = log_softmax.Reshape(logits.shape()),
                            .divisor = Tensor()};
  if (options.reduction == Reduction::kNone) {
    result.loss = result.loss.Reshape(labels.shape());
  } else if (options.reduction == Reduction::kSum) {
    result.loss = Sum(result.loss);
  } else {
    const Tensor totals = Sum(parts, {1});
    result.divisor = totals.Select(0, 1);
    result.loss = Div(totals.Select(0, 0), result.divisor);
  }
  result.loss = result.loss.To(logits.dtype());
  return result;
}

Tensor CrossEntropyBackward(const Tensor& dy, const Tensor& log_softmax,
                            const Tensor& labels, const Tensor& divisor,
                            const ClassLossOptions& options) {
  constexpr char kOp[] = "cross_entropy_backward";
  RequireClasses(kOp, log_softmax, labels, options);
  RequireOneDevice(kOp, log_softmax, dy);
  const bool reduced = options.reduction != Reduction::kNone;
  Require(dy.numel() == (reduced ? 1 : labels.numel()), kOp,
          "the gradient of the loss has shape ", dy.shape().ToString());
  Require(divisor.defined() == (options.reduction == Reduction::kMean), kOp,
          "the divisor is that of a mean's forward");
  const Tensor from = LogitRows(log_softmax, labels);
  const Tensor dx = Tensor::EmptyLike(from);
  KernelFor(dx, cpu::CrossEntropyBackward, cuda::CrossEntropyBackward)(
      dx, from, labels.Contiguous().Flatten(),
      dy.To(from.dtype()).Contiguous().Flatten(), divisor, Dense(options));
  return dx.Reshape(log_softmax.shape());
}

Tensor MseLoss(const Tensor& x, const Tensor& target) {
  RequireMseArguments("mse_loss", x, target);
  const MemoryFormat format = x.SuggestFormat();
  Tensor loss =
      Tensor::Empty(Shape(), {.dtype = x.dtype(), .device = x.device()});
  KernelFor(x, cpu::MeanSquaredDifference, cuda::MeanSquaredDifference)(
      loss, x.Contiguous(format), target.Contiguous(format));
  return loss;
}

Tensor MseLossBackward(const Tensor& dy, const Tensor& x,
                       const Tensor& target) {
  constexpr char kOp[] = "mse_loss_backward";
  RequireMseArguments(kOp, x, target);
  RequireOneDevice(kOp, x, dy);
  const Tensor scale = LossGradient(kOp, dy, x);
  if (x.device().is_cpu()) {
    Tensor dx = Sub(x, target);
    ScaleInto(dx, 2 * scale.Item() / static_cast<double>(x.numel()));
    return dx;
  }
  const Tensor from = x.Contiguous(x.SuggestFormat());
  Tensor dx = Tensor::EmptyLike(from);
  cuda::MeanSquaredDifferenceBackward(
      dx, from, target.Contiguous(from.SuggestFormat()), scale);
  return dx;
}

Tensor ComputePointLoss(const char* op, PointLoss loss, LossPart part,
                        const Tensor& x, const Tensor& target,
                        double parameter) {
  RequireOneDevice(op, x, target);
  RequireFloating(op, x);
  RequireSameDType(op, x, target);
  if (loss == PointLoss::kBinary) RequireProbabilities(op, x);
  const Shape shape = BroadcastShapes(op, x.shape(), target.shape());
  Tensor out = EmptyResult(shape, x.dtype(), x, target);
  KernelFor(out, cpu::ComputePointLoss, cuda::ComputePointLoss)(
      out, loss, part, x.Expand(shape), target.Expand(shape), parameter);
  return out;
}

}  // namespace baton::ops
