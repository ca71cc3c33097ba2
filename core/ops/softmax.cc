// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/softmax.h"

#include "core/cpu/softmax.h"
#include "core/cuda/softmax.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

// Returns `x` with `axis` as the last axis, dense.
Tensor WithLastAxis(const Tensor& x, int axis) {
  return x.Transpose(axis, -1).Contiguous();
}

// Moves the last axis of `out` back to `axis`; the result has the memory order
// of `model`.
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

}  // namespace baton::ops
