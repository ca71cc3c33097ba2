// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/arithmetic.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/cpu/elementwise.h"
#include "core/cuda/elementwise.h"
#include "core/dtype_visit.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"
#include "core/parallel.h"

namespace baton::ops {
namespace {

void RequireNotBool(const char* op, const Tensor& x) {
  Require(x.dtype() != DType::kBool, op, "expected numbers, got bool");
}

// Converting a scalar that an integer tensor cannot hold would silently change
// it.
void RequireScalarFits(const char* op, const Tensor& x, double value) {
  if (IsFloating(x.dtype())) return;
  const bool fits = VisitDType(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    return Convert<double>(Convert<T>(value)) == value;
  });
  Require(fits, op, value, " is not a value of ", Name(x.dtype()));
}

Tensor Binary(const char* name, BinaryOp op, const Tensor& a, const Tensor& b) {
  RequireOneDevice(name, a, b);
  RequireSameDType(name, a, b);
  const Shape shape = BroadcastShapes(name, a.shape(), b.shape());
  Tensor out = EmptyResult(shape, a.dtype(), a, b);
  KernelFor(out, cpu::Binary, cuda::Binary)(op, out, a.Expand(shape),
                                            b.Expand(shape));
  return out;
}

Tensor Compare(const char* name, CompareOp op, bool negate, const Tensor& a,
               const Tensor& b) {
  RequireOneDevice(name, a, b);
  RequireSameDType(name, a, b);
  const Shape shape = BroadcastShapes(name, a.shape(), b.shape());
  Tensor out = EmptyResult(shape, DType::kBool, a, b);
  KernelFor(out, cpu::Compare, cuda::Compare)(op, negate, out, a.Expand(shape),
                                              b.Expand(shape));
  return out;
}

Tensor Unary(UnaryOp op, const Tensor& x) {
  Tensor out = Tensor::EmptyLike(x);
  KernelFor(out, cpu::Unary, cuda::Unary)(op, out, x);
  return out;
}

Tensor FloatingUnary(const char* name, UnaryOp op, const Tensor& x) {
  RequireOneDevice(name, x);
  RequireFloating(name, x);
  return Unary(op, x);
}

// Expands `source` to the shape of `target`. If it shares target's memory in
// another order, copies it, because elements would be written before they are
// read.
Tensor PrepareSource(const char* name, const Tensor& target,
                     const Tensor& source) {
  RequireOneDevice(name, target, source);
  RequireSameDType(name, target, source);
  RequireWritable(name, target);
  Require(
      BroadcastShapes(name, target.shape(), source.shape()) == target.shape(),
      name, source.shape().ToString(), " does not broadcast to ",
      target.shape().ToString());
  Tensor expanded = source.Expand(target.shape());
  const bool same_view = target.offset() == expanded.offset() &&
                         target.strides() == expanded.strides();
  if (target.storage() != source.storage() || same_view) return expanded;
  return expanded.Clone();
}

}  // namespace

Tensor Add(const Tensor& a, const Tensor& b) {
  return Binary("add", BinaryOp::kAdd, a, b);
}
Tensor Sub(const Tensor& a, const Tensor& b) {
  RequireNotBool("sub", a);
  return Binary("sub", BinaryOp::kSub, a, b);
}
Tensor Mul(const Tensor& a, const Tensor& b) {
  return Binary("mul", BinaryOp::kMul, a, b);
}
Tensor Div(const Tensor& a, const Tensor& b) {
  RequireNotBool("div", a);
  return Binary("div", BinaryOp::kDiv, a, b);
}
Tensor Maximum(const Tensor& a, const Tensor& b) {
  return Binary("maximum", BinaryOp::kMaximum, a, b);
}
Tensor Minimum(const Tensor& a, const Tensor& b) {
  return Binary("minimum", BinaryOp::kMinimum, a, b);
}

Tensor Pow(const Tensor& a, const Tensor& b) {
  RequireOneDevice("pow", a, b);
  RequireFloating("pow", a);
  return Binary("pow", BinaryOp::kPow, a, b);
}

Tensor AddScalar(const Tensor& a, double b) {
  RequireOneDevice("add_scalar", a);
  RequireScalarFits("add_scalar", a, b);
  Tensor out = Tensor::EmptyLike(a);
  KernelFor(out, cpu::Affine, cuda::Affine)(out, a, 1, b);
  return out;
}

Tensor MulScalar(const Tensor& a, double b) {
  RequireOneDevice("mul_scalar", a);
  RequireScalarFits("mul_scalar", a, b);
  Tensor out = Tensor::EmptyLike(a);
  KernelFor(out, cpu::Affine, cuda::Affine)(out, a, b, 0);
  return out;
}

Tensor Neg(const Tensor& x) {
  RequireOneDevice("neg", x);
  RequireNotBool("neg", x);
  return Unary(UnaryOp::kNeg, x);
}

Tensor Abs(const Tensor& x) {
  RequireOneDevice("abs", x);
  RequireNotBool("abs", x);
  return Unary(UnaryOp::kAbs, x);
}

Tensor Exp(const Tensor& x) { return FloatingUnary("exp", UnaryOp::kExp, x); }
Tensor Log(const Tensor& x) { return FloatingUnary("log", UnaryOp::kLog, x); }
Tensor Sqrt(const Tensor& x) {
  return FloatingUnary("sqrt", UnaryOp::kSqrt, x);
}

Tensor Sin(const Tensor& x) { return FloatingUnary("sin", UnaryOp::kSin, x); }
Tensor Cos(const Tensor& x) { return FloatingUnary("cos", UnaryOp::kCos, x); }

Tensor PowScalar(const Tensor& x, double exponent) {
  RequireOneDevice("pow_scalar", x);
  RequireFloating("pow_scalar", x);
  Tensor out = Tensor::EmptyLike(x);
  KernelFor(out, cpu::Pow, cuda::Pow)(out, x, exponent);
  return out;
}

Tensor Clamp(const Tensor& x, double low, double high) {
  RequireOneDevice("clamp", x);
  Require(low <= high, "clamp", "low ", low, " is above high ", high);
  Tensor out = Tensor::EmptyLike(x);
  KernelFor(out, cpu::Clamp, cuda::Clamp)(out, x, low, high);
  return out;
}

Tensor Equal(const Tensor& a, const Tensor& b) {
  return Compare("equal", CompareOp::kEqual, false, a, b);
}
Tensor NotEqual(const Tensor& a, const Tensor& b) {
  return Compare("not_equal", CompareOp::kEqual, true, a, b);
}
Tensor Less(const Tensor& a, const Tensor& b) {
  return Compare("less", CompareOp::kLess, false, a, b);
}
Tensor LessEqual(const Tensor& a, const Tensor& b) {
  return Compare("less_equal", CompareOp::kLessEqual, false, a, b);
}
Tensor Greater(const Tensor& a, const Tensor& b) {
  return Compare("greater", CompareOp::kLess, false, b, a);
}
Tensor GreaterEqual(const Tensor& a, const Tensor& b) {
  return Compare("greater_equal", CompareOp::kLessEqual, false, b, a);
}

Tensor Where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  constexpr char kOp[] = "where";
  RequireOneDevice(kOp, condition, a, b);
  RequireDType(kOp, "a condition", condition, DType::kBool);
  RequireSameDType(kOp, a, b);
  const Shape shape = BroadcastShapes(
      kOp, condition.shape(), BroadcastShapes(kOp, a.shape(), b.shape()));
  Tensor out = EmptyResult(shape, a.dtype(), a, b);
  KernelFor(out, cpu::Where, cuda::Where)(out, condition.Expand(shape),
                                          a.Expand(shape), b.Expand(shape));
  return out;
}

Tensor MaskedFill(const Tensor& x, const Tensor& mask, double value) {
  constexpr char kOp[] = "masked_fill";
  RequireOneDevice(kOp, x, mask);
  RequireDType(kOp, "a mask", mask, DType::kBool);
  RequireScalarFits(kOp, x, value);
  const Shape shape = BroadcastShapes(kOp, x.shape(), mask.shape());
  Tensor out = EmptyResult(shape, x.dtype(), x, mask);
  KernelFor(out, cpu::MaskedFill, cuda::MaskedFill)(out, x.Expand(shape),
                                                    mask.Expand(shape), value);
  return out;
}

void AddInto(const Tensor& target, const Tensor& source, double alpha) {
  const Tensor from = PrepareSource("add_into", target, source);
  RequireScalarFits("add_into", target, alpha);
  target.PrepareWrite();
  KernelFor(target, cpu::AddScaled, cuda::AddScaled)(target, target, from,
                                                     alpha);
  target.BumpVersion();
}

void MulInto(const Tensor& target, const Tensor& source) {
  const Tensor from = PrepareSource("mul_into", target, source);
  target.PrepareWrite();
  KernelFor(target, cpu::Binary, cuda::Binary)(BinaryOp::kMul, target, target,
                                               from);
  target.BumpVersion();
}

void ScaleInto(const Tensor& target, double factor) {
  RequireOneDevice("scale_into", target);
  RequireWritable("scale_into", target);
  RequireScalarFits("scale_into", target, factor);
  target.PrepareWrite();
  KernelFor(target, cpu::Affine, cuda::Affine)(target, target, factor, 0);
  target.BumpVersion();
}

bool AllClose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  RequireOneDevice("all_close", a, b);
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor x = a.To(Device::Cpu()).Contiguous();
  const Tensor y = b.To(Device::Cpu()).Contiguous();
  std::atomic<bool> close{true};
  VisitDType(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* p = x.data<T>();
    const T* q = y.data<T>();
    ParallelFor(x.numel(), 32768, [&](int64_t begin, int64_t end) {
      bool all = true;
      for (int64_t i = begin; i < end; ++i) {
        const double u = Convert<double>(p[i]);
        const double v = Convert<double>(q[i]);
        // The first comparison is for equal infinities.
        all &= u == v || std::fabs(u - v) <= atol + rtol * std::fabs(v);
      }
      if (!all) close.store(false, std::memory_order_relaxed);
    });
  });
  return close.load();
}

bool BitEqual(const Tensor& a, const Tensor& b) {
  RequireOneDevice("bit_equal", a, b);
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor x = a.To(Device::Cpu()).Contiguous();
  const Tensor y = b.To(Device::Cpu()).Contiguous();
  return x.numel() == 0 ||
         std::memcmp(x.raw_data(), y.raw_data(), x.nbytes()) == 0;
}

}  // namespace baton::ops
