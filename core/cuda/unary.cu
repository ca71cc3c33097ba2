// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/arithmetic.cuh"
#include "core/cuda/convert.cuh"
#include "core/cuda/elementwise.h"
#include "core/cuda/map.cuh"

namespace baton::cuda {
namespace {

struct NegOp {
  template <typename C>
  __device__ C operator()(C x) const {
    if constexpr (std::is_floating_point_v<C>) {
      return -x;
    } else if constexpr (std::is_same_v<C, bool>) {
      return x;
    } else {
      return SubOp{}(C(0), x);
    }
  }
};
struct AbsOp {
  template <typename C>
  __device__ C operator()(C x) const {
    if constexpr (std::is_floating_point_v<C>) {
      return fabs(x);
    } else if constexpr (std::is_signed_v<C>) {
      return x < C(0) ? NegOp{}(x) : x;
    } else {
      return x;
    }
  }
};
struct ExpOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return exp(x);
  }
};
struct LogOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return log(x);
  }
};
struct SqrtOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return sqrt(x);
  }
};
struct InverseSqrtOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return C(1) / sqrt(x);
  }
};
struct SquareOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return x * x;
  }
};
struct SinOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return sin(x);
  }
};
struct CosOp {
  template <typename C>
  __device__ C operator()(C x) const {
    return cos(x);
  }
};
template <typename C>
struct PowScalarOp {
  __device__ C operator()(C x) const { return pow(x, exponent); }
  C exponent;
};

template <typename C>
struct AffineOp {
  __device__ C operator()(C x) const {
    return AddOp{}(MulOp{}(x, scale), shift);
  }
  C scale, shift;
};

template <typename C>
struct ClampOp {
  __device__ C operator()(C x) const {
    const C raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
  C low, high;
};

template <typename Op>
void MapAny(const Launch& launch, const Tensor& out, const Tensor& x) {
  VisitDeviceType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map<T, T>(launch, Computed<T, Op>{}, out, x);
  });
}

template <typename Op>
void MapFloating(const Launch& launch, const Tensor& out, const Tensor& x) {
  VisitDeviceFloating("unary", out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map<T, T>(launch, Computed<T, Op>{}, out, x);
  });
}

}  // namespace

void Unary(UnaryOp op, const Tensor& out, const Tensor& x) {
  const Launch launch("unary", {&out}, {&x});
  switch (op) {
    case UnaryOp::kNeg:
      return MapAny<NegOp>(launch, out, x);
    case UnaryOp::kAbs:
      return MapAny<AbsOp>(launch, out, x);
    case UnaryOp::kExp:
      return MapFloating<ExpOp>(launch, out, x);
    case UnaryOp::kLog:
      return MapFloating<LogOp>(launch, out, x);
    case UnaryOp::kSqrt:
      return MapFloating<SqrtOp>(launch, out, x);
    case UnaryOp::kSin:
      return MapFloating<SinOp>(launch, out, x);
    case UnaryOp::kCos:
      return MapFloating<CosOp>(launch, out, x);
  }
}

void Affine(const Tensor& out, const Tensor& x, double scale, double shift) {
  const Launch launch("affine", {&out}, {&x});
  VisitDeviceType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    Map<T, T>(launch,
              Computed<T, AffineOp<C>>{{Convert<C>(scale), Convert<C>(shift)}},
              out, x);
  });
}

void Pow(const Tensor& out, const Tensor& x, double exponent) {
  if (exponent == 0.5) return Unary(UnaryOp::kSqrt, out, x);
  const Launch launch("pow", {&out}, {&x});
  if (exponent == -0.5) return MapFloating<InverseSqrtOp>(launch, out, x);
  if (exponent == 2) return MapFloating<SquareOp>(launch, out, x);
  VisitDeviceFloating("pow", out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    Map<T, T>(launch, Computed<T, PowScalarOp<C>>{{static_cast<C>(exponent)}},
              out, x);
  });
}

void Clamp(const Tensor& out, const Tensor& x, double low, double high) {
  const Launch launch("clamp", {&out}, {&x});
  VisitDeviceType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    Map<T, T>(launch,
              Computed<T, ClampOp<C>>{{Convert<C>(low), Convert<C>(high)}}, out,
              x);
  });
}

}  // namespace baton::cuda
