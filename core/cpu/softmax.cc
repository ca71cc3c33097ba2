// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/softmax.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/cpu/copy.h"
#include "core/cpu/lanes.h"
#include "core/cpu/math.h"
#include "core/cpu/simd.h"
#include "core/dtype_visit.h"
#include "core/parallel.h"

namespace baton::cpu {
namespace {

constexpr int64_t kCostlyGrain = 4096;

template <typename C>
BATON_SIMD_INLINE C SumOf(const C* values, int64_t count) {
  return ReduceLanes<C>(
      count, 0, [values](int64_t i) { return values[i]; },
      [](C a, C b) { return a + b; });
}

// Leaves x - max(x) in `row`.
template <typename T, typename C>
BATON_SIMD_INLINE void LoadShifted(const T* x, C* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) row[i] = Convert<C>(x[i]);
  const C max = ReduceLanes<C>(
      count, -std::numeric_limits<C>::infinity(),
      [row](int64_t i) { return row[i]; },
      [](C a, C b) { return a < b ? b : a; });
  for (int64_t i = 0; i < count; ++i) row[i] -= max;
}

// Row kernels: `row` is scratch memory of `count` elements.
struct SoftmaxRow {
  template <typename T, typename C>
  BATON_SIMD_INLINE void operator()(T* y, const T* x, C* row,
                                    int64_t count) const {
    LoadShifted(x, row, count);
    for (int64_t i = 0; i < count; ++i) row[i] = Exp(row[i]);
    const C scale = C(1) / SumOf(row, count);
    for (int64_t i = 0; i < count; ++i) y[i] = Convert<T>(row[i] * scale);
  }
};

struct LogSoftmaxRow {
  template <typename T, typename C>
  BATON_SIMD_INLINE void operator()(T* y, const T* x, C* row,
                                    int64_t count) const {
    LoadShifted(x, row, count);
    const C sum = ReduceLanes<C>(
        count, 0, [row](int64_t i) { return Exp(row[i]); },
        [](C a, C b) { return a + b; });
    const C log_sum = std::log(sum);
    for (int64_t i = 0; i < count; ++i) y[i] = Convert<T>(row[i] - log_sum);
  }
};

struct SoftmaxBackwardRow {
  template <typename T, typename C>
  BATON_SIMD_INLINE void operator()(T* dx, const T* dy, const T* y, C* row,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      row[i] = Convert<C>(dy[i]) * Convert<C>(y[i]);
    }
    const C dot = SumOf(row, count);
    for (int64_t i = 0; i < count; ++i) {
      dx[i] = Convert<T>((Convert<C>(dy[i]) - dot) * Convert<C>(y[i]));
    }
  }
};

struct LogSoftmaxBackwardRow {
  template <typename T, typename C>
  BATON_SIMD_INLINE void operator()(T* dx, const T* dy, const T* y, C* row,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) row[i] = Convert<C>(dy[i]);
    const C sum = SumOf(row, count);
    for (int64_t i = 0; i < count; ++i) {
      dx[i] = Convert<T>(row[i] - Exp(Convert<C>(y[i])) * sum);
    }
  }
};

struct CrossEntropyBackwardRow {
  template <typename T, typename C>
  BATON_SIMD_INLINE void operator()(T* dx, const T* log_softmax, C scale,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      dx[i] = Convert<T>(scale * Exp(Convert<C>(log_softmax[i])));
    }
  }
};

// fn(first element of a row, scratch row) for every row, in T.
template <typename T, typename Fn>
void ForRows(const Tensor& x, Fn fn) {
  const int64_t width = x.dim(-1);
  if (x.numel() == 0) return;
  const int64_t grain = std::max<int64_t>(1, kCostlyGrain / width);
  ParallelFor(x.numel() / width, grain, [&](int64_t begin, int64_t end) {
    std::vector<ComputeType<T>> row(static_cast<size_t>(width));
    for (int64_t i = begin; i < end; ++i) fn(i * width, row.data());
  });
}

template <typename Row>
void RunForward(const Tensor& y, const Tensor& x) {
  VisitFloating("softmax", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = y.data<T>();
    const T* from = x.data<T>();
    ForRows<T>(x, [&](int64_t at, auto* row) {
      RunSimd(Row{}, to + at, from + at, row, x.dim(-1));
    });
  });
}

template <typename Row>
void RunBackward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  VisitFloating("softmax", y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = dx.data<T>();
    const T* from = dy.data<T>();
    const T* saved = y.data<T>();
    ForRows<T>(y, [&](int64_t at, auto* row) {
      RunSimd(Row{}, to + at, from + at, saved + at, row, y.dim(-1));
    });
  });
}

double MeanNegativeLogLikelihood(const Tensor& log_softmax,
                                 const Tensor& labels) {
  const int64_t* label = labels.data<int64_t>();
  return VisitFloating("cross_entropy", log_softmax.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* values = log_softmax.data<T>();
    double sum = 0;
    for (int64_t i = 0; i < labels.numel(); ++i) {
      sum -= Convert<double>(values[i * log_softmax.dim(1) + label[i]]);
    }
    return sum / static_cast<double>(labels.numel());
  });
}

}  // namespace

void Softmax(const Tensor& y, const Tensor& x) { RunForward<SoftmaxRow>(y, x); }
void LogSoftmax(const Tensor& y, const Tensor& x) {
  RunForward<LogSoftmaxRow>(y, x);
}
void SoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  RunBackward<SoftmaxBackwardRow>(dx, dy, y);
}
void LogSoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  RunBackward<LogSoftmaxBackwardRow>(dx, dy, y);
}

void CrossEntropy(const Tensor& loss, const Tensor& log_softmax,
                  const Tensor& logits, const Tensor& labels) {
  LogSoftmax(log_softmax, logits);
  Fill(loss, MeanNegativeLogLikelihood(log_softmax, labels));
}

void CrossEntropyBackward(const Tensor& dx, const Tensor& log_softmax,
                          const Tensor& labels, const Tensor& dy) {
  const double scale = dy.Item() / static_cast<double>(labels.numel());
  const int64_t* label = labels.data<int64_t>();
  VisitFloating("cross_entropy", dx.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    T* to = dx.data<T>();
    const T* from = log_softmax.data<T>();
    const C factor = Convert<C>(scale);
    const int64_t width = dx.dim(1);
    ForRows<T>(dx, [&](int64_t at, C*) {
      RunSimd(CrossEntropyBackwardRow{}, to + at, from + at, factor, width);
      const int64_t hit = at + label[at / width];
      to[hit] = Convert<T>(factor * (Exp(Convert<C>(from[hit])) - C(1)));
    });
  });
}

}  // namespace baton::cpu
