// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/arithmetic.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"

namespace baton::autograd {
namespace {

// Returns the gradient of an input of shape `shape` that was broadcast.
Tensor Reduced(const Tensor& grad, const Shape& shape) {
  return grad.shape() == shape ? grad : ops::SumTo(grad, shape);
}

Tensor ScalarLike(const Tensor& x, double value) {
  return Tensor::Full(Shape(), value,
                      {.dtype = x.dtype(), .device = x.device()});
}

// Returns 0 where a < b, 1/2 where a == b, and 1 elsewhere: if one is NaN, both
// get the whole gradient.
Tensor ShareOfLarger(const Tensor& a, const Tensor& b) {
  const Tensor less = ops::Add(ops::Less(a, b).To(a.dtype()),
                               ops::LessEqual(a, b).To(a.dtype()));
  return ops::AddScalar(ops::MulScalar(less, -0.5), 1);
}

Variable Extremum(const char* op, const Variable& a, const Variable& b,
                  bool larger) {
  const Tensor &s = a.tensor(), &t = b.tensor();
  const auto share = [larger](const Tensor& mine, const Tensor& other) {
    return larger ? ShareOfLarger(mine, other) : ShareOfLarger(other, mine);
  };
  const auto gradient = [share](size_t mine, size_t other) {
    return [=](const Backprop& p) {
      const Tensor weight = share(p.saved(mine), p.saved(other));
      return Reduced(ops::Mul(p.dy(), weight), p.saved(mine).shape());
    };
  };
  return Record(op, larger ? ops::Maximum(s, t) : ops::Minimum(s, t), {s, t},
                {{a, gradient(0, 1)}, {b, gradient(1, 0)}});
}

// The gradient formulas of pow; base, exponent and power are saved.
Tensor BaseGradient(const Backprop& p) {
  const Tensor &base = p.saved(0), &exponent = p.saved(1);
  const Tensor slope =
      ops::Mul(exponent, ops::Pow(base, ops::AddScalar(exponent, -1)));
  const Tensor flat = ops::Equal(exponent, ScalarLike(exponent, 0));
  return Reduced(ops::MaskedFill(ops::Mul(p.dy(), slope), flat, 0),
                 base.shape());
}

Tensor ExponentGradient(const Backprop& p) {
  const Tensor &base = p.saved(0), &exponent = p.saved(1);
  const Tensor flat =
      ops::Mul(ops::Equal(base, ScalarLike(base, 0)),
               ops::GreaterEqual(exponent, ScalarLike(exponent, 0)));
  const Tensor slope = ops::Mul(p.saved(2), ops::Log(base));
  return Reduced(ops::Mul(p.dy(), ops::MaskedFill(slope, flat, 0)),
                 exponent.shape());
}

}  // namespace

Variable Add(const Variable& given_a, const Variable& given_b) {
  const Variable a = AsWide(given_a, given_b), b = AsWide(given_b, given_a);
  const auto pass = [](const Shape& shape) {
    return [shape](const Backprop& p) { return Reduced(p.dy(), shape); };
  };
  return Record("add", ops::Add(a.tensor(), b.tensor()), {},
                {{a, pass(a.shape())}, {b, pass(b.shape())}});
}

Variable Sub(const Variable& given_a, const Variable& given_b) {
  const Variable a = AsWide(given_a, given_b), b = AsWide(given_b, given_a);
  const Shape &left = a.shape(), &right = b.shape();
  return Record(
      "sub", ops::Sub(a.tensor(), b.tensor()), {},
      {{a, [left](const Backprop& p) { return Reduced(p.dy(), left); }},
       {b, [right](const Backprop& p) {
          return ops::Neg(Reduced(p.dy(), right));
        }}});
}

Variable Mul(const Variable& given_a, const Variable& given_b) {
  const Variable a = AsWide(given_a, given_b), b = AsWide(given_b, given_a);
  const auto times = [](size_t mine, size_t other) {
    return [=](const Backprop& p) {
      return Reduced(ops::Mul(p.dy(), p.saved(other)), p.saved(mine).shape());
    };
  };
  return Record("mul", ops::Mul(a.tensor(), b.tensor()),
                {a.tensor(), b.tensor()}, {{a, times(0, 1)}, {b, times(1, 0)}});
}

Variable Div(const Variable& given_a, const Variable& given_b) {
  const Variable a = AsWide(given_a, given_b), b = AsWide(given_b, given_a);
  const Tensor y = ops::Div(a.tensor(), b.tensor());
  const Shape& left = a.shape();
  return Record("div", y, {b.tensor(), y},
                {{a,
                  [left](const Backprop& p) {
                    return Reduced(ops::Div(p.dy(), p.saved(0)), left);
                  }},
                 {b, [](const Backprop& p) {
                    const Tensor dy_y = ops::Mul(p.dy(), p.saved(1));
                    return Reduced(ops::Neg(ops::Div(dy_y, p.saved(0))),
                                   p.saved(0).shape());
                  }}});
}

Variable Maximum(const Variable& a, const Variable& b) {
  return Extremum("maximum", AsWide(a, b), AsWide(b, a), true);
}

Variable Minimum(const Variable& a, const Variable& b) {
  return Extremum("minimum", AsWide(a, b), AsWide(b, a), false);
}

Variable Pow(const Variable& base, const Variable& exponent) {
  const Variable a = InF32(base), b = InF32(exponent);
  const Tensor y = ops::Pow(a.tensor(), b.tensor());
  return Record("pow", y, {a.tensor(), b.tensor(), y},
                {{a, BaseGradient}, {b, ExponentGradient}});
}

Variable AddScalar(const Variable& a, double b) {
  return Record("add_scalar", ops::AddScalar(a.tensor(), b), {},
                {{a, [](const Backprop& p) { return p.dy(); }}});
}

Variable MulScalar(const Variable& a, double b) {
  return Record(
      "mul_scalar", ops::MulScalar(a.tensor(), b), {},
      {{a, [b](const Backprop& p) { return ops::MulScalar(p.dy(), b); }}});
}

Variable Neg(const Variable& x) {
  return Record("neg", ops::Neg(x.tensor()), {},
                {{x, [](const Backprop& p) { return ops::Neg(p.dy()); }}});
}

Variable Abs(const Variable& x) {
  return Record("abs", ops::Abs(x.tensor()), {x.tensor()},
                {{x, [](const Backprop& p) {
                    const Tensor zero = ScalarLike(p.saved(0), 0);
                    const DType dtype = p.dy().dtype();
                    return ops::Mul(
                        p.dy(),
                        ops::Sub(ops::Greater(p.saved(0), zero).To(dtype),
                                 ops::Less(p.saved(0), zero).To(dtype)));
                  }}});
}

Variable Exp(const Variable& given) {
  const Variable x = InF32(given);
  const Tensor y = ops::Exp(x.tensor());
  return Record(
      "exp", y, {y},
      {{x, [](const Backprop& p) { return ops::Mul(p.dy(), p.saved(0)); }}});
}

Variable Log(const Variable& given) {
  const Variable x = InF32(given);
  return Record(
      "log", ops::Log(x.tensor()), {x.tensor()},
      {{x, [](const Backprop& p) { return ops::Div(p.dy(), p.saved(0)); }}});
}

Variable Sqrt(const Variable& x) {
  const Tensor y = ops::Sqrt(x.tensor());
  return Record("sqrt", y, {y}, {{x, [](const Backprop& p) {
                                    return ops::MulScalar(
                                        ops::Div(p.dy(), p.saved(0)), 0.5);
                                  }}});
}

Variable Sin(const Variable& x) {
  return Record("sin", ops::Sin(x.tensor()), {x.tensor()},
                {{x, [](const Backprop& p) {
                    return ops::Mul(p.dy(), ops::Cos(p.saved(0)));
                  }}});
}

Variable Cos(const Variable& x) {
  return Record("cos", ops::Cos(x.tensor()), {x.tensor()},
                {{x, [](const Backprop& p) {
                    return ops::Neg(ops::Mul(p.dy(), ops::Sin(p.saved(0))));
                  }}});
}

Variable PowScalar(const Variable& given, double exponent) {
  const Variable x = InF32(given);
  return Record("pow", ops::PowScalar(x.tensor(), exponent), {x.tensor()},
                {{x, [exponent](const Backprop& p) {
                    // The power would be infinite for x = 0, and 0 times
                    // infinity is not 0.
                    if (exponent == 0) return ops::MulScalar(p.dy(), 0);
                    const Tensor power =
                        ops::PowScalar(p.saved(0), exponent - 1);
                    return ops::MulScalar(ops::Mul(p.dy(), power), exponent);
                  }}});
}

Variable Clamp(const Variable& x, double low, double high) {
  return Record("clamp", ops::Clamp(x.tensor(), low, high), {x.tensor()},
                {{x, [low, high](const Backprop& p) {
                    const Tensor& v = p.saved(0);
                    const Tensor zero = ScalarLike(v, 0);
                    const Tensor above = ops::Where(
                        ops::GreaterEqual(v, ScalarLike(v, low)), p.dy(), zero);
                    return ops::Where(ops::LessEqual(v, ScalarLike(v, high)),
                                      above, zero);
                  }}});
}

Variable Where(const Tensor& condition, const Variable& given_a,
               const Variable& given_b) {
  const Variable a = AsWide(given_a, given_b), b = AsWide(given_b, given_a);
  const Shape &left = a.shape(), &right = b.shape();
  return Record(
      "where", ops::Where(condition, a.tensor(), b.tensor()), {condition},
      {{a,
        [left](const Backprop& p) {
          return Reduced(ops::Where(p.saved(0), p.dy(), ScalarLike(p.dy(), 0)),
                         left);
        }},
       {b, [right](const Backprop& p) {
          return Reduced(ops::Where(p.saved(0), ScalarLike(p.dy(), 0), p.dy()),
                         right);
        }}});
}

Variable MaskedFill(const Variable& x, const Tensor& mask, double value) {
  const Shape& shape = x.shape();
  return Record("masked_fill", ops::MaskedFill(x.tensor(), mask, value), {mask},
                {{x, [shape](const Backprop& p) {
                    return Reduced(ops::MaskedFill(p.dy(), p.saved(0), 0),
                                   shape);
                  }}});
}

}  // namespace baton::autograd

namespace baton {

Variable operator+(const Variable& a, const Variable& b) {
  return autograd::Add(a, b);
}
Variable operator-(const Variable& a, const Variable& b) {
  return autograd::Sub(a, b);
}
Variable operator*(const Variable& a, const Variable& b) {
  return autograd::Mul(a, b);
}
Variable operator/(const Variable& a, const Variable& b) {
  return autograd::Div(a, b);
}
Variable operator-(const Variable& x) { return autograd::Neg(x); }
Variable operator+(const Variable& a, double b) {
  return autograd::AddScalar(a, b);
}
Variable operator-(const Variable& a, double b) {
  return autograd::AddScalar(a, -b);
}
Variable operator*(const Variable& a, double b) {
  return autograd::MulScalar(a, b);
}
Variable operator/(const Variable& a, double b) {
  return autograd::MulScalar(a, 1 / b);
}
Variable operator+(double a, const Variable& b) {
  return autograd::AddScalar(b, a);
}
Variable operator-(double a, const Variable& b) {
  return autograd::AddScalar(autograd::Neg(b), a);
}
Variable operator*(double a, const Variable& b) {
  return autograd::MulScalar(b, a);
}

}  // namespace baton
