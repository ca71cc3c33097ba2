// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/activation.h"
#include "core/cuda/arithmetic.cuh"
#include "core/cuda/map.cuh"

namespace baton::cuda {
namespace {

constexpr double kInverseSqrt2 = 0.70710678118654752440;
constexpr double kInverseSqrt2Pi = 0.39894228040143267794;

// Passes NaN on.
struct ReluOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return x < C(0) ? C(0) : x;
  }
  template <typename C>
  __device__ C operator()(C dy, C y) const {
    return y > C(0) ? dy : C(0);
  }
};
struct SigmoidOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return C(1) / (C(1) + exp(-x));
  }
  template <typename C>
  __device__ C operator()(C dy, C y) const {
    return dy * (y * (C(1) - y));
  }
};
struct TanhOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return tanh(x);
  }
  template <typename C>
  __device__ C operator()(C dy, C y) const {
    return dy * (C(1) - y * y);
  }
};
struct GeluOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return x * Cdf(x);
  }
  template <typename C>
  __device__ C operator()(C dy, C x) const {
    const C density = C(kInverseSqrt2Pi) * exp(C(-0.5) * x * x);
    return dy * (Cdf(x) + x * density);
  }
  template <typename C>
  __device__ static C Cdf(C x) {
    return C(0.5) * (C(1) + erf(x * C(kInverseSqrt2)));
  }
};
struct SiluOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return x * Gate(x);
  }
  template <typename C>
  __device__ C operator()(C dy, C x) const {
    const C gate = Gate(x);
    return dy * (gate * (C(1) + x * (C(1) - gate)));
  }
  template <typename C>
  __device__ static C Gate(C x) {
    return C(1) / (C(1) + exp(-x));
  }
};

template <typename T>
struct LeakyReluFn {
  __device__ T operator()(T x) const {
    using C = Compute<T>;
    const C value = As<C>(x);
    return As<T>(value > C(0) ? value : value * slope);
  }
  __device__ T operator()(T dy, T x) const {
    using C = Compute<T>;
    const C grad = As<C>(dy);
    return As<T>(As<C>(x) > C(0) ? grad : grad * slope);
  }
  Compute<T> slope;
};

template <typename T>
struct MaskFn {
  __device__ T operator()(T x, bool keep) const {
    using C = Compute<T>;
    return As<T>(keep ? As<C>(x) * scale : C(0));
  }
  Compute<T> scale;
};

template <typename Fn>
void VisitFunction(Activation function, Fn&& fn) {
  switch (function) {
    case Activation::kRelu:
      return fn(ReluOp{});
    case Activation::kSigmoid:
      return fn(SigmoidOp{});
    case Activation::kTanh:
      return fn(TanhOp{});
    case Activation::kGelu:
      return fn(GeluOp{});
    case Activation::kSilu:
      return fn(SiluOp{});
  }
}

}  // namespace

void Activate(Activation function, const Tensor& out, const Tensor& x) {
  const Launch launch("activation", {&out}, {&x});
  VisitFunction(function, [&](auto op) {
    VisitDeviceFloating("activation", x.dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      Map<T, T>(launch, Computed<T, decltype(op)>{}, out, x);
    });
  });
}

void ActivateBackward(Activation function, const Tensor& dx, const Tensor& dy,
                      const Tensor& saved) {
  const Launch launch("activation_backward", {&dx}, {&dy, &saved});
  VisitFunction(function, [&](auto op) {
    VisitDeviceFloating("activation_backward", dx.dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      Map<T, T, T>(launch, Computed<T, decltype(op)>{}, dx, dy, saved);
    });
  });
}

void LeakyRelu(const Tensor& out, const Tensor& x, double slope) {
  const Launch launch("leaky_relu", {&out}, {&x});
  VisitDeviceFloating("leaky_relu", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const auto factor = static_cast<Compute<T>>(slope);
    Map<T, T>(launch, LeakyReluFn<T>{factor}, out, x);
  });
}

void LeakyReluBackward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                       double slope) {
  const Launch launch("leaky_relu_backward", {&dx}, {&dy, &x});
  VisitDeviceFloating("leaky_relu_backward", dx.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const auto factor = static_cast<Compute<T>>(slope);
    Map<T, T, T>(launch, LeakyReluFn<T>{factor}, dx, dy, x);
  });
}

void MaskAndScale(const Tensor& out, const Tensor& x, const Tensor& mask,
                  double scale) {
  const Launch launch("dropout", {&out}, {&x, &mask});
  VisitDeviceFloating("dropout", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const auto factor = static_cast<Compute<T>>(scale);
    Map<T, T, bool>(launch, MaskFn<T>{factor}, out, x, mask);
  });
}

}  // namespace baton::cuda
