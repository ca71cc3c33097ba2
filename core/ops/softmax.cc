// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/softmax.h"

#include "core/cpu/reduce.h"
#include "core/cpu/softmax.h"
#include "core/cuda/reduce.h"
#include "core/cuda/softmax.h"
#include "core/ops/arithmetic.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

// `x` with `axis` last, dense.
Tensor WithLastAxis(const Tensor& x, int axis) {
  return x.Transpose(axis, -1).Contiguous();
}

// `out` with its last axis back at `axis`, in the memory order of `model`.
Tensor Restored(const Tensor& out, int axis, const Tensor& model) {
  return out.Transpose(axis, -1).Contiguous(model.SuggestFormat());
}

using ForwardKernel = void(const Tensor&, const Tensor&);
using BackwardKernel = void(const Tensor&, const Tensor&, const Tensor&);

Tensor Forward(const char* op, ForwardKernel* cpu, ForwardKernel* cuda,
               const Tensor& x, int axis) {
  RequireOneDevice(op, x);
  RequireFloating(op, x);
  const int at = NormalizeAxis(op, axis, x.rank());
  const Tensor from = WithLastAxis(x, at);
  const Tensor y = Tensor::EmptyLike(from);
  KernelFor(x, cpu, cuda)(y, from);
  return Restored(y, at, x);
}

Tensor Backward(const char* op, BackwardKernel* cpu, BackwardKernel* cuda,
                const Tensor& dy, const Tensor& y, int axis) {
  RequireOneDevice(op, dy, y);
  RequireFloating(op, y);
  RequireSameDType(op, dy, y);
  RequireSameShape(op, dy, y);
  const int at = NormalizeAxis(op, axis, y.rank());
  const Tensor saved = WithLastAxis(y, at);
  const Tensor dx = Tensor::EmptyLike(saved);
  KernelFor(y, cpu, cuda)(dx, WithLastAxis(dy, at), saved);
  return Restored(dx, at, y);
}

void RequireLabels(const char* op, const Tensor& logits, const Tensor& labels) {
  RequireOneDevice(op, logits, labels);
  RequireFloating(op, logits);
  RequireDType(op, "labels", labels, DType::kI64);
  Require(logits.rank() >= 1, op, "expected logits [..., C], got ",
          logits.shape().ToString());
  const Shape leading(Dims(logits.shape().begin(), logits.shape().end() - 1));
  Require(labels.shape() == leading, op, "expected labels ", leading.ToString(),
          ", got ", labels.shape().ToString());
  // Reading labels on a GPU would wait for it: its kernels check for
  // themselves.
  if (labels.device().is_cuda()) return;
  const int64_t* label = labels.data<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i) {
    Require(label[i] >= 0 && label[i] < logits.dim(-1), op, "label ", label[i],
            " at ", i, " is outside [0, ", logits.dim(-1), ")");
  }
}

// [..., C] -> [rows, C], dense.
Tensor LogitRows(const Tensor& x, const Tensor& labels) {
  return x.Contiguous().Reshape({labels.numel(), x.dim(-1)});
}

void RequireMseArguments(const char* op, const Tensor& x,
                         const Tensor& target) {
  RequireOneDevice(op, x, target);
  RequireFloating(op, x);
  RequireSameDType(op, x, target);
  RequireSameShape(op, x, target);
}

// The gradient of a loss as kernels of `x` read it.
Tensor LossGradient(const char* op, const Tensor& dy, const Tensor& x) {
  Require(dy.numel() == 1, op, "expected dy of one element, got ",
          dy.shape().ToString());
  return x.device().is_cpu() ? dy : dy.To(x.dtype());
}

Tensor EmptyLoss(const Tensor& x) {
  return Tensor::Empty(Shape(), {.dtype = x.dtype(), .device = x.device()});
}

}  // namespace

Tensor Softmax(const Tensor& x, int axis) {
  return Forward("softmax", cpu::Softmax, cuda::Softmax, x, axis);
}
Tensor SoftmaxBackward(const Tensor& dy, const Tensor& y, int axis) {
  return Backward("softmax_backward", cpu::SoftmaxBackward,
                  cuda::SoftmaxBackward, dy, y, axis);
}
Tensor LogSoftmax(const Tensor& x, int axis) {
  return Forward("log_softmax", cpu::LogSoftmax, cuda::LogSoftmax, x, axis);
}
Tensor LogSoftmaxBackward(const Tensor& dy, const Tensor& y, int axis) {
  return Backward("log_softmax_backward", cpu::LogSoftmaxBackward,
                  cuda::LogSoftmaxBackward, dy, y, axis);
}

CrossEntropyResult CrossEntropy(const Tensor& logits, const Tensor& labels) {
  RequireOneDevice("cross_entropy", logits, labels);
  const Tensor dense_labels = labels.Contiguous();
  RequireLabels("cross_entropy", logits, dense_labels);
  const Tensor from = LogitRows(logits, labels);
  CrossEntropyResult result = {EmptyLoss(from), Tensor::EmptyLike(from)};
  KernelFor(from, cpu::CrossEntropy, cuda::CrossEntropy)(
      result.loss, result.log_softmax, from, dense_labels.Flatten());
  result.log_softmax = result.log_softmax.Reshape(logits.shape());
  return result;
}

Tensor CrossEntropyBackward(const Tensor& dy, const Tensor& log_softmax,
                            const Tensor& labels) {
  constexpr char kOp[] = "cross_entropy_backward";
  RequireOneDevice(kOp, dy, log_softmax, labels);
  const Tensor dense_labels = labels.Contiguous();
  RequireLabels(kOp, log_softmax, dense_labels);
  const Tensor from = LogitRows(log_softmax, labels);
  const Tensor dx = Tensor::EmptyLike(from);
  KernelFor(dx, cpu::CrossEntropyBackward, cuda::CrossEntropyBackward)(
      dx, from, dense_labels.Flatten(), LossGradient(kOp, dy, from));
  return dx.Reshape(log_softmax.shape());
}

Tensor MseLoss(const Tensor& x, const Tensor& target) {
  RequireMseArguments("mse_loss", x, target);
  const MemoryFormat format = x.SuggestFormat();
  Tensor loss = EmptyLoss(x);
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

}  // namespace baton::ops
