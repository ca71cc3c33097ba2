// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/activation.h"

#include "core/cpu/map.h"
#include "core/cpu/math.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

constexpr int64_t kCostlyGrain = 4096;
constexpr double kInverseSqrt2 = 0.70710678118654752440;
constexpr double kInverseSqrt2Pi = 0.39894228040143267794;

// Passes NaN on.
struct ReluOp {
  template <typename C>
  BATON_SIMD_INLINE C operator()(C x) const {
    return x < C(0) ? C(0) : x;
  }
  template <typename C>
  BATON_SIMD_INLINE C operator()(C dy, C y) const {
    return y > C(0) ? dy : C(0);
  }
};
struct SigmoidOp {
  template <typename C>
  BATON_SIMD_INLINE C operator()(C x) const {
    return Sigmoid(x);
  }
  template <typename C>
  BATON_SIMD_INLINE C operator()(C dy, C y) const {
    return dy * (y * (C(1) - y));
  }
};
struct TanhOp {
  template <typename C>
  BATON_SIMD_INLINE C operator()(C x) const {
    return Tanh(x);
  }
  template <typename C>
  BATON_SIMD_INLINE C operator()(C dy, C y) const {
    return dy * (C(1) - y * y);
  }
};
struct GeluOp {
  template <typename C>
  BATON_SIMD_INLINE C operator()(C x) const {
    return x * Cdf(x);
  }
  template <typename C>
  BATON_SIMD_INLINE C operator()(C dy, C x) const {
    const C density = C(kInverseSqrt2Pi) * Exp(C(-0.5) * x * x);
    return dy * (Cdf(x) + x * density);
  }
  template <typename C>
  BATON_SIMD_INLINE static C Cdf(C x) {
    return C(0.5) * (C(1) + Erf(x * C(kInverseSqrt2)));
  }
};
struct SiluOp {
  template <typename C>
  BATON_SIMD_INLINE C operator()(C x) const {
    return x * Sigmoid(x);
  }
  template <typename C>
  BATON_SIMD_INLINE C operator()(C dy, C x) const {
    const C gate = Sigmoid(x);
    return dy * (gate * (C(1) + x * (C(1) - gate)));
  }
};

template <typename Op>
void Forward(int64_t grain, const Tensor& out, const Tensor& x) {
  VisitFloating("activation", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    Map<T, T>(
        grain, [](T v) { return Convert<T>(Op{}(Convert<C>(v))); }, out, x);
  });
}

template <typename Op>
void Backward(int64_t grain, const Tensor& dx, const Tensor& dy,
              const Tensor& saved) {
  VisitFloating("activation", dx.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    Map<T, T, T>(
        grain,
        [](T d, T s) { return Convert<T>(Op{}(Convert<C>(d), Convert<C>(s))); },
        dx, dy, saved);
  });
}

}  // namespace

void Activate(Activation function, const Tensor& out, const Tensor& x) {
  switch (function) {
    case Activation::kRelu:
      return Forward<ReluOp>(kGrain, out, x);
    case Activation::kSigmoid:
      return Forward<SigmoidOp>(kCostlyGrain, out, x);
    case Activation::kTanh:
      return Forward<TanhOp>(kCostlyGrain, out, x);
    case Activation::kGelu:
      return Forward<GeluOp>(kCostlyGrain, out, x);
    case Activation::kSilu:
      return Forward<SiluOp>(kCostlyGrain, out, x);
  }
}

void ActivateBackward(Activation function, const Tensor& dx, const Tensor& dy,
                      const Tensor& saved) {
  switch (function) {
    case Activation::kRelu:
      return Backward<ReluOp>(kGrain, dx, dy, saved);
    case Activation::kSigmoid:
      return Backward<SigmoidOp>(kGrain, dx, dy, saved);
    case Activation::kTanh:
      return Backward<TanhOp>(kGrain, dx, dy, saved);
    case Activation::kGelu:
      return Backward<GeluOp>(kCostlyGrain, dx, dy, saved);
    case Activation::kSilu:
      return Backward<SiluOp>(kCostlyGrain, dx, dy, saved);
  }
}

void LeakyRelu(const Tensor& out, const Tensor& x, double slope) {
  VisitFloating("leaky_relu", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const C factor = Convert<C>(slope);
    Map<T, T>(
        kGrain,
        [factor](T v) {
          const C value = Convert<C>(v);
          return Convert<T>(value > C(0) ? value : value * factor);
        },
        out, x);
  });
}

void LeakyReluBackward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                       double slope) {
  VisitFloating("leaky_relu_backward", dx.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const C factor = Convert<C>(slope);
    Map<T, T, T>(
        kGrain,
        [factor](T d, T v) {
          const C grad = Convert<C>(d);
          return Convert<T>(Convert<C>(v) > C(0) ? grad : grad * factor);
        },
        dx, dy, x);
  });
}

void MaskAndScale(const Tensor& out, const Tensor& x, const Tensor& mask,
                  double scale) {
  VisitFloating("dropout", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const C factor = Convert<C>(scale);
    Map<T, T, bool>(
        kGrain,
        [factor](T v, bool keep) {
          return Convert<T>(keep ? Convert<C>(v) * factor : C(0));
        },
        out, x, mask);
  });
}

}  // namespace baton::cpu
