// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu/lanes.h"
#include "core/cpu/simd.h"
#include "core/dtype_visit.h"
#include "core/parallel.h"

namespace baton::cpu {
namespace {

constexpr char kNormOp[] = "layer_norm";
constexpr int64_t kNormGrain = 16384;  // elements worth a thread
// The rows are divided into at most this many parts, depending only on their
// number. Each part has its own sums for the parameters.
constexpr int64_t kMostSums = 64;
constexpr int64_t kFewestSummed = 16;

template <typename C, typename Load>
BATON_SIMD_INLINE C MeanOf(int64_t count, Load load) {
  return ReduceLanes<C>(count, C(0), load, [](C a, C b) { return a + b; }) /
         static_cast<C>(count);
}

// How a row finds gamma and beta: each element has its own, or its channel has
// one. Visit calls body(i, gamma, beta) for every element of the row.
template <typename C>
struct ElementGains {
  const C* gamma;
  const C* beta;
  template <typename Body>
  BATON_SIMD_INLINE void Visit(int64_t count, Body body) const {
    for (int64_t i = 0; i < count; ++i) body(i, gamma[i], beta[i]);
  }
};
template <typename C>
struct ChannelGains {
  const C* gamma;
  const C* beta;
  int64_t inner;  // elements in a channel
  template <typename Body>
  BATON_SIMD_INLINE void Visit(int64_t count, Body body) const {
    for (int64_t first = 0, c = 0; first < count; first += inner, ++c) {
      const C g = gamma[c], b = beta[c];
      for (int64_t i = first; i < first + inner; ++i) body(i, g, b);
    }
  }
};

// In the kernels for rows, `row` is scratch memory of `count` elements.
struct NormaliseRow {
  template <typename T, typename C, typename Gains>
  BATON_SIMD_INLINE void operator()(T* y, C* mean, C* scale, const T* x,
                                    Gains gains, C eps, C* row,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) row[i] = Convert<C>(x[i]);
    const C center = MeanOf<C>(count, [row](int64_t i) { return row[i]; });
    for (int64_t i = 0; i < count; ++i) row[i] -= center;
    const C variance =
        MeanOf<C>(count, [row](int64_t i) { return row[i] * row[i]; });
    const C factor = C(1) / std::sqrt(variance + eps);
    gains.Visit(count, [=](int64_t i, C gamma, C beta) {
      y[i] = Convert<T>(row[i] * factor * gamma + beta);
    });
    *mean = center;
    *scale = factor;
  }
};

struct NormaliseBackwardRow {
  template <typename T, typename C, typename Gains>
  BATON_SIMD_INLINE void operator()(T* dx, const T* dy, const T* x, Gains gains,
                                    C center, C factor, C* row,
                                    int64_t count) const {
    const auto normal = [=](int64_t i) {
      return (Convert<C>(x[i]) - center) * factor;
    };
    gains.Visit(count, [=](int64_t i, C gamma, C) {
      row[i] = Convert<C>(dy[i]) * gamma;
    });
    const C mean = MeanOf<C>(count, [row](int64_t i) { return row[i]; });
    const C along =
        MeanOf<C>(count, [=](int64_t i) { return row[i] * normal(i); });
    for (int64_t i = 0; i < count; ++i) {
      dx[i] = Convert<T>(factor * (row[i] - mean - normal(i) * along));
    }
  }
};

struct AddParametersRow {
  template <typename T, typename C>
  BATON_SIMD_INLINE void operator()(C* dgamma, C* dbeta, const T* dy,
                                    const T* x, C center, C factor,
                                    int64_t count) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const C d = Convert<C>(dy[i]);
      dgamma[i] += d * ((Convert<C>(x[i]) - center) * factor);
      dbeta[i] += d;
    }
  }
};

// The two sums over one channel of one image.
template <typename C>
struct ChannelSums {
  C dgamma, dbeta;
};
struct AddChannel {
  template <typename T, typename C>
  BATON_SIMD_INLINE void operator()(C* dgamma, C* dbeta, const T* dy,
                                    const T* x, C center, C factor,
                                    int64_t count) const {
    const auto term = [=](int64_t i) {
      const C d = Convert<C>(dy[i]);
      return ChannelSums<C>{d * ((Convert<C>(x[i]) - center) * factor), d};
    };
    const auto sum = ReduceLanes<ChannelSums<C>>(
        count, {C(0), C(0)}, term,
        [](const ChannelSums<C>& a, const ChannelSums<C>& b) {
          return ChannelSums<C>{a.dgamma + b.dgamma, a.dbeta + b.dbeta};
        });
    *dgamma += sum.dgamma;
    *dbeta += sum.dbeta;
  }
};

// Calls fn with a function that returns the gains of a row.
template <typename C, typename Fn>
void WithGains(const Tensor& x, const Tensor& gamma, const Tensor& beta,
               int64_t groups, Fn fn) {
  const C *g = gamma.data<C>(), *b = beta.data<C>();
  const int64_t channels = gamma.numel() / groups;
  const int64_t inner = x.dim(1) / channels;
  if (inner == 1) {
    fn([=](int64_t row) {
      const int64_t first = row % groups * channels;
      return ElementGains<C>{g + first, b + first};
    });
  } else {
    fn([=](int64_t row) {
      const int64_t first = row % groups * channels;
      return ChannelGains<C>{g + first, b + first, inner};
    });
  }
}

// Calls fn(row, scratch row) for every row of x, whose elements are T.
template <typename T, typename Fn>
void ForNormRows(const Tensor& x, Fn fn) {
  const int64_t width = x.dim(1);
  ParallelFor(x.dim(0), std::max<int64_t>(1, kNormGrain / width),
              [&](int64_t begin, int64_t end) {
                std::vector<ComputeType<T>> row(static_cast<size_t>(width));
                for (int64_t i = begin; i < end; ++i) fn(i, row.data());
              });
}

}  // namespace

void LayerNorm(const Tensor& y, const Tensor& mean,
               const Tensor& inverse_stddev, const Tensor& x,
               const Tensor& gamma, const Tensor& beta, double eps,
               int64_t groups) {
  VisitFloating(kNormOp, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const int64_t width = x.dim(1);
    WithGains<C>(x, gamma, beta, groups, [&](auto gains) {
      ForNormRows<T>(x, [&](int64_t i, C* row) {
        RunSimd(NormaliseRow{}, y.data<T>() + i * width, mean.data<C>() + i,
                inverse_stddev.data<C>() + i,
                static_cast<const T*>(x.data<T>() + i * width), gains(i),
                static_cast<C>(eps), row, width);
      });
    });
  });
}

void LayerNormBackward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                       const Tensor& gamma, const Tensor& mean,
                       const Tensor& inverse_stddev, int64_t groups) {
  VisitFloating(kNormOp, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const int64_t width = x.dim(1);
    WithGains<C>(x, gamma, gamma, groups, [&](auto gains) {
      ForNormRows<T>(x, [&](int64_t i, C* row) {
        RunSimd(NormaliseBackwardRow{}, dx.data<T>() + i * width,
                static_cast<const T*>(dy.data<T>() + i * width),
                static_cast<const T*>(x.data<T>() + i * width), gains(i),
                mean.data<C>()[i], inverse_stddev.data<C>()[i], row, width);
      });
    });
  });
}

namespace {

// Each thread has some of the channels, and adds the images in order.
void ChannelParameters(const Tensor& dgamma, const Tensor& dbeta,
                       const Tensor& dy, const Tensor& x, const Tensor& mean,
                       const Tensor& inverse_stddev, int64_t groups) {
  const int64_t all = dgamma.numel(), channels = all / groups;
  const int64_t images = x.dim(0) / groups, inner = x.dim(1) / channels;
  const int64_t work = std::max<int64_t>(1, images * inner);
  VisitFloating(kNormOp, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    ParallelFor(all, std::max<int64_t>(1, kNormGrain / work),
                [&](int64_t begin, int64_t end) {
                  for (int64_t c = begin; c < end; ++c) {
                    C* const to_gamma = dgamma.data<C>() + c;
                    C* const to_beta = dbeta.data<C>() + c;
                    *to_gamma = *to_beta = C(0);
                    for (int64_t image = 0; image < images; ++image) {
                      const int64_t at = (image * all + c) * inner;
                      const int64_t row = image * groups + c / channels;
                      RunSimd(AddChannel{}, to_gamma, to_beta,
                              static_cast<const T*>(dy.data<T>() + at),
                              static_cast<const T*>(x.data<T>() + at),
                              mean.data<C>()[row],
                              inverse_stddev.data<C>()[row], inner);
                    }
                  }
                });
  });
}

}  // namespace

void LayerNormParameters(const Tensor& dgamma, const Tensor& dbeta,
                         const Tensor& dy, const Tensor& x, const Tensor& mean,
                         const Tensor& inverse_stddev, int64_t groups) {
  if (groups > 1 || dgamma.numel() != x.dim(1)) {
    return ChannelParameters(dgamma, dbeta, dy, x, mean, inverse_stddev,
                             groups);
  }
  const int64_t rows = x.dim(0), width = x.dim(1);
  const int64_t summed =
      std::max(kFewestSummed, (rows + kMostSums - 1) / kMostSums);
  const int64_t parts = std::max<int64_t>(1, (rows + summed - 1) / summed);
  VisitFloating(kNormOp, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const auto per_part = static_cast<size_t>(2 * width);
    std::vector<C> sums(static_cast<size_t>(parts) * per_part, C(0));
    ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * summed; i < std::min(rows, end * summed); ++i) {
        C* sum = sums.data() + static_cast<size_t>(i / summed) * per_part;
        RunSimd(AddParametersRow{}, sum, sum + width,
                static_cast<const T*>(dy.data<T>() + i * width),
                static_cast<const T*>(x.data<T>() + i * width),
                mean.data<C>()[i], inverse_stddev.data<C>()[i], width);
      }
    });
    for (int64_t part = 1; part < parts; ++part) {
      const C* sum = sums.data() + static_cast<size_t>(part) * per_part;
      for (size_t i = 0; i < per_part; ++i) sums[i] += sum[i];
    }
    std::copy_n(sums.data(), width, dgamma.data<C>());
    std::copy_n(sums.data() + width, width, dbeta.data<C>());
  });
}

}  // namespace baton::cpu
