// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/optimizer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/cpu/simd.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

struct PlainSgd {
  template <typename T, typename G>
  BATON_SIMD_INLINE void operator()(T* __restrict value,
                                    const G* __restrict grad, int64_t count,
                                    const SgdCoefficients* c) const {
    const T lr = static_cast<T>(c->lr), sign = static_cast<T>(c->sign);
    const T decay = static_cast<T>(c->weight_decay);
    for (int64_t i = 0; i < count; ++i) {
      const T g = sign * Convert<T>(grad[i]) + decay * value[i];
      value[i] -= lr * g;
    }
  }
};

struct MomentumSgd {
  template <typename T, typename G>
  BATON_SIMD_INLINE void operator()(T* __restrict value,
                                    const G* __restrict grad,
                                    T* __restrict momentum, int64_t count,
                                    const SgdCoefficients* c) const {
    const T lr = static_cast<T>(c->lr), sign = static_cast<T>(c->sign);
    const T decay = static_cast<T>(c->weight_decay);
    const T mu = static_cast<T>(c->momentum),
            damped = static_cast<T>(c->damped);
    const T lookahead = static_cast<T>(c->lookahead);
    const bool nesterov = c->nesterov;
    for (int64_t i = 0; i < count; ++i) {
      const T g = sign * Convert<T>(grad[i]) + decay * value[i];
      const T m = mu * momentum[i] + damped * g;
      momentum[i] = m;
      value[i] -= lr * (nesterov ? g + lookahead * m : m);
    }
  }
};

struct Adam {
  template <typename T, typename G>
  BATON_SIMD_INLINE void operator()(T* __restrict value,
                                    const G* __restrict grad,
                                    T* __restrict mean, T* __restrict variance,
                                    T* __restrict max_variance, int64_t count,
                                    const AdamCoefficients* c) const {
    const T keep = static_cast<T>(c->keep), sign = static_cast<T>(c->sign);
    const T decay = static_cast<T>(c->weight_decay);
    const T beta1 = static_cast<T>(c->beta1), beta2 = static_cast<T>(c->beta2);
    const T rest1 = static_cast<T>(1 - c->beta1);
    const T rest2 = static_cast<T>(1 - c->beta2);
    const T step = static_cast<T>(c->step_size), eps = static_cast<T>(c->eps);
    const T scale = static_cast<T>(c->variance_scale);
    const bool amsgrad = max_variance != nullptr;
    for (int64_t i = 0; i < count; ++i) {
      const T kept = keep * value[i];
      const T g = sign * Convert<T>(grad[i]) + decay * kept;
      const T m = beta1 * mean[i] + rest1 * g;
      T v = beta2 * variance[i] + rest2 * g * g;
      mean[i] = m;
      variance[i] = v;
      if (amsgrad) {
        v = std::max(max_variance[i], v);
        max_variance[i] = v;
      }
      value[i] = kept - step * (m / (std::sqrt(v) / scale + eps));
    }
  }
};

template <typename T>
T* At(void* array, int64_t index) {
  return array == nullptr ? nullptr : static_cast<T*>(array) + index;
}

template <typename T>
const T* At(const void* array, int64_t index) {
  return static_cast<const T*>(array) + index;
}

template <typename T, typename G>
void RunSgd(void* value, const void* grad, void* momentum, int64_t begin,
            int64_t count, const SgdCoefficients& c) {
  if (momentum == nullptr) {
    RunSimd(PlainSgd(), At<T>(value, begin), At<G>(grad, begin), count, &c);
  } else {
    RunSimd(MomentumSgd(), At<T>(value, begin), At<G>(grad, begin),
            At<T>(momentum, begin), count, &c);
  }
}

template <typename T, typename G>
void RunAdam(void* value, const void* grad, void* mean, void* variance,
             void* max_variance, int64_t begin, int64_t count,
             const AdamCoefficients& c) {
  RunSimd(Adam(), At<T>(value, begin), At<G>(grad, begin), At<T>(mean, begin),
          At<T>(variance, begin), At<T>(max_variance, begin), count, &c);
}

// Calls fn with the types of the value and of its gradient.
template <typename Fn>
void VisitTypes(DType value, DType grad, Fn fn) {
  if (value == DType::kF64) {
    fn(std::type_identity<double>{}, std::type_identity<double>{});
  } else if (grad == DType::kBF16) {
    fn(std::type_identity<float>{}, std::type_identity<BFloat16>{});
  } else if (grad == DType::kF16) {
    fn(std::type_identity<float>{}, std::type_identity<Half>{});
  } else {
    fn(std::type_identity<float>{}, std::type_identity<float>{});
  }
}

struct LowerRow {
  template <typename L>
  BATON_SIMD_INLINE void operator()(L* __restrict to,
                                    const float* __restrict from,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) to[i] = Convert<L>(from[i]);
  }
};

struct TakeBackRow {
  template <typename L>
  BATON_SIMD_INLINE void operator()(float* __restrict value,
                                    const L* __restrict lowered,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const bool same = std::bit_cast<uint16_t>(Convert<L>(value[i])) ==
                        std::bit_cast<uint16_t>(lowered[i]);
      value[i] = same ? value[i] : Convert<float>(lowered[i]);
    }
  }
};

}  // namespace

void SgdRange(DType dtype, void* value, const Gradient& grad, void* momentum,
              int64_t begin, int64_t end, const SgdCoefficients& c) {
  VisitTypes(dtype, grad.dtype, [&](auto t, auto g) {
    RunSgd<typename decltype(t)::type, typename decltype(g)::type>(
        value, grad.data, momentum, begin, end - begin, c);
  });
}

void AdamRange(DType dtype, void* value, const Gradient& grad, void* mean,
               void* variance, void* max_variance, int64_t begin, int64_t end,
               const AdamCoefficients& c) {
  VisitTypes(dtype, grad.dtype, [&](auto t, auto g) {
    RunAdam<typename decltype(t)::type, typename decltype(g)::type>(
        value, grad.data, mean, variance, max_variance, begin, end - begin, c);
  });
}

void TakeBackRange(DType dtype, void* value, const void* lowered, int64_t begin,
                   int64_t end) {
  float* to = At<float>(value, begin);
  if (dtype == DType::kBF16) {
    RunSimd(TakeBackRow(), to, At<BFloat16>(lowered, begin), end - begin);
  } else {
    RunSimd(TakeBackRow(), to, At<Half>(lowered, begin), end - begin);
  }
}

void LowerRange(DType dtype, void* lowered, const void* value, int64_t begin,
                int64_t end) {
  const float* from = At<float>(value, begin);
  if (dtype == DType::kBF16) {
    RunSimd(LowerRow(), At<BFloat16>(lowered, begin), from, end - begin);
  } else {
    RunSimd(LowerRow(), At<Half>(lowered, begin), from, end - begin);
  }
}

}  // namespace baton::cpu
