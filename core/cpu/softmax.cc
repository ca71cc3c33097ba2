// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

// Writes x - max(x) to `row`.
template <typename T, typename C>
BATON_SIMD_INLINE void LoadShifted(const T* x, C* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) row[i] = Convert<C>(x[i]);
  const C max = ReduceLanes<C>(
      count, -std::numeric_limits<C>::infinity(),
      [row](int64_t i) { return row[i]; },
      [](C a, C b) { return a < b ? b : a; });
  for (int64_t i = 0; i < count; ++i) row[i] -= max;
}

// In the kernels for rows, `row` is scratch memory of `count` elements.
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

// Writes scale * softmax, less `spread` times each class's weight.
struct CrossEntropyBackwardRow {
  template <typename T, typename C>
  BATON_SIMD_INLINE void operator()(T* dx, const T* log_softmax,
                                    const T* weight, C scale, C spread,
                                    int64_t count) const {
    if (weight == nullptr) {
      for (int64_t i = 0; i < count; ++i) {
        dx[i] = Convert<T>(scale * Exp(Convert<C>(log_softmax[i])) - spread);
      }
    } else {
      for (int64_t i = 0; i < count; ++i) {
        dx[i] = Convert<T>(scale * Exp(Convert<C>(log_softmax[i])) -
                           spread * Convert<C>(weight[i]));
      }
    }
  }
};

// Calls fn(first element of a row, scratch row) for every row, in T.
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

// The target that a label stands for: `kept` for its own class, and `spread`
// times its weight for every class.
template <typename T>
struct ClassTargets {
  using C = ComputeType<T>;
  const int64_t* labels;
  const T* weight;  // null: ones
  int64_t ignored;
  C kept, spread;
  C spread_sum = 0;  // over all classes

  ClassTargets(const Tensor& label_rows, int64_t classes,
               const ClassLossOptions& options)
      : labels(label_rows.data<int64_t>()),
        weight(options.weight.defined() ? options.weight.data<T>() : nullptr),
        ignored(options.ignore_index),
        kept(Convert<C>(1 - options.label_smoothing)),
        spread(Convert<C>(options.label_smoothing /
                          static_cast<double>(classes))) {
    if (spread == 0) return;
    for (int64_t c = 0; c < classes; ++c) spread_sum += spread * WeightOf(c);
  }
  C WeightOf(int64_t c) const {
    return weight == nullptr ? C(1) : Convert<C>(weight[c]);
  }
  // Returns the loss of a row that is not ignored.
  C LossOf(const T* log_softmax, int64_t classes, int64_t label) const {
    C loss = -(kept * WeightOf(label)) * Convert<C>(log_softmax[label]);
    if (spread == 0) return loss;
    for (int64_t c = 0; c < classes; ++c) {
      loss -= spread * WeightOf(c) * Convert<C>(log_softmax[c]);
    }
    return loss;
  }
};

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

void CrossEntropy(const Tensor& parts, const Tensor& log_softmax,
                  const Tensor& logits, const Tensor& labels,
                  const ClassLossOptions& options) {
  LogSoftmax(log_softmax, logits);
  VisitFloating("cross_entropy", logits.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const int64_t rows = labels.numel(), classes = logits.dim(1);
    const ClassTargets<T> targets(labels, classes, options);
    const T* from = log_softmax.data<T>();
    C* losses = parts.data<C>();
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t label = targets.labels[i];
      const bool counts = label != targets.ignored;
      losses[i] =
          counts ? targets.LossOf(from + i * classes, classes, label) : C(0);
      losses[rows + i] = counts ? targets.WeightOf(label) : C(0);
    }
  });
}

void CrossEntropyBackward(const Tensor& dx, const Tensor& log_softmax,
                          const Tensor& labels, const Tensor& dy,
                          const Tensor& divisor,
                          const ClassLossOptions& options) {
  const double total = divisor.defined() ? divisor.Item() : 1;
  VisitFloating("cross_entropy", dx.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const int64_t classes = dx.dim(1);
    const ClassTargets<T> targets(labels, classes, options);
    T* to = dx.data<T>();
    const T* from = log_softmax.data<T>();
    const T* grads = dy.data<T>();
    const int64_t step = dy.numel() == 1 ? 0 : 1;
    ForRows<T>(dx, [&](int64_t at, C*) {
      const int64_t row = at / classes, label = targets.labels[row];
      if (label == targets.ignored) {
        std::fill_n(to + at, classes, T());
        return;
      }
      const C scale = Convert<C>(Convert<double>(grads[row * step]) / total);
      const C hit = targets.kept * targets.WeightOf(label);
      const C sum = hit + targets.spread_sum;
      RunSimd(CrossEntropyBackwardRow{}, to + at, from + at, targets.weight,
              scale * sum, scale * targets.spread, classes);
      const C wanted = hit + targets.spread * targets.WeightOf(label);
      to[at + label] = Convert<T>(
          scale * (sum * Exp(Convert<C>(from[at + label])) - wanted));
    });
  });
}

}  // namespace baton::cpu
