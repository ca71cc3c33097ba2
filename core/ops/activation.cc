// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/activation.h"

#include "core/cpu/activation.h"
#include "core/cuda/activation.h"
#include "core/cuda/random.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

struct Names {
  const char* forward;
  const char* backward;
};

// The names of the ops, which begin error texts.
Names NamesOf(Activation function) {
  switch (function) {
    case Activation::kRelu:
      return {"relu", "relu_backward"};
    case Activation::kSigmoid:
      return {"sigmoid", "sigmoid_backward"};
    case Activation::kTanh:
      return {"tanh", "tanh_backward"};
    case Activation::kGelu:
      return {"gelu", "gelu_backward"};
    case Activation::kSilu:
      break;
  }
  return {"silu", "silu_backward"};
}

double KeptScale(const char* op, double p) {
  Require(p >= 0 && p <= 1, op, "probability ", p, " is outside [0, 1]");
  return p < 1 ? 1 / (1 - p) : 0;
}

Tensor MaskAndScale(const Tensor& x, const Tensor& mask, double scale) {
  Tensor out = Tensor::EmptyLike(x);
  KernelFor(out, cpu::MaskAndScale, cuda::MaskAndScale)(out, x, mask, scale);
  return out;
}

}  // namespace

Tensor Activate(Activation function, const Tensor& x) {
  const char* op = NamesOf(function).forward;
  RequireOneDevice(op, x);
  RequireFloating(op, x);
  Tensor out = Tensor::EmptyLike(x);
  KernelFor(out, cpu::Activate, cuda::Activate)(function, out, x);
  return out;
}

Tensor ActivateBackward(Activation function, const Tensor& dy,
                        const Tensor& saved) {
  const char* op = NamesOf(function).backward;
  RequireOneDevice(op, dy, saved);
  RequireFloating(op, dy);
  RequireSameDType(op, dy, saved);
  RequireSameShape(op, dy, saved);
  // The result takes the memory order of `saved`, because dy may be an expanded
  // view.
  Tensor dx = Tensor::EmptyLike(saved);
  KernelFor(dx, cpu::ActivateBackward, cuda::ActivateBackward)(function, dx, dy,
                                                               saved);
  return dx;
}

bool SavesInput(Activation function) {
  return function == Activation::kGelu || function == Activation::kSilu;
}

Tensor Relu(const Tensor& x) { return Activate(Activation::kRelu, x); }
Tensor ReluBackward(const Tensor& dy, const Tensor& y) {
  return ActivateBackward(Activation::kRelu, dy, y);
}

Tensor Sigmoid(const Tensor& x) { return Activate(Activation::kSigmoid, x); }
Tensor SigmoidBackward(const Tensor& dy, const Tensor& y) {
  return ActivateBackward(Activation::kSigmoid, dy, y);
}

Tensor Tanh(const Tensor& x) { return Activate(Activation::kTanh, x); }
Tensor TanhBackward(const Tensor& dy, const Tensor& y) {
  return ActivateBackward(Activation::kTanh, dy, y);
}

Tensor Silu(const Tensor& x) { return Activate(Activation::kSilu, x); }
Tensor SiluBackward(const Tensor& dy, const Tensor& x) {
  return ActivateBackward(Activation::kSilu, dy, x);
}

Tensor Gelu(const Tensor& x) { return Activate(Activation::kGelu, x); }
Tensor GeluBackward(const Tensor& dy, const Tensor& x) {
  return ActivateBackward(Activation::kGelu, dy, x);
}

Tensor LeakyRelu(const Tensor& x, double slope) {
  constexpr char kOp[] = "leaky_relu";
  RequireOneDevice(kOp, x);
  RequireFloating(kOp, x);
  Tensor out = Tensor::EmptyLike(x);
  KernelFor(out, cpu::LeakyRelu, cuda::LeakyRelu)(out, x, slope);
  return out;
}

Tensor LeakyReluBackward(const Tensor& dy, const Tensor& x, double slope) {
  constexpr char kOp[] = "leaky_relu_backward";
  RequireOneDevice(kOp, dy, x);
  RequireFloating(kOp, dy);
  RequireSameDType(kOp, dy, x);
  RequireSameShape(kOp, dy, x);
  Tensor dx = Tensor::EmptyLike(x);
  KernelFor(dx, cpu::LeakyReluBackward, cuda::LeakyReluBackward)(dx, dy, x,
                                                                 slope);
  return dx;
}

DropoutResult Dropout(const Tensor& x, double p, Generator& generator) {
  RequireOneDevice("dropout", x);
  RequireFloating("dropout", x);
  const double scale = KeptScale("dropout", p);
  if (x.device().is_cuda() && x.IsContiguous()) {
    const Tensor y = Tensor::EmptyLike(x);
    const Tensor mask =
        Tensor::Empty(x.shape(), {.dtype = DType::kBool, .device = x.device()});
    cuda::Dropout(y, mask, x, 1 - p, scale, generator.DrawOn(x.device()));
    return {y, mask};
  }
  const Tensor mask = RandBernoulli(x.shape(), 1 - p, generator, x.device());
  return {MaskAndScale(x, mask, scale), mask};
}

Tensor DropoutBackward(const Tensor& dy, const Tensor& mask, double p) {
  constexpr char kOp[] = "dropout_backward";
  RequireOneDevice(kOp, dy, mask);
  RequireFloating(kOp, dy);
  RequireDType(kOp, "a mask", mask, DType::kBool);
  RequireSameShape(kOp, dy, mask);
  return MaskAndScale(dy, mask, KeptScale(kOp, p));
}

}  // namespace baton::ops
