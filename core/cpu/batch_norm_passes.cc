// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/batch_norm_passes.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "core/cpu/batch_norm_kernels.h"
#include "core/dtype_visit.h"
#include "core/parallel.h"

namespace baton::cpu {
namespace {

// The rows of a dense x [N, C, ...]: rows of C elements (channels-last), or N *
// C planes. The same loops process planes, as rows of kLanes elements of one
// channel.
struct Layout {
  explicit Layout(const Tensor& x)
      : channels(x.dim(1)),
        inner(channels == 0 || x.dim(0) == 0
                  ? 0
                  : x.numel() / (x.dim(0) * channels)),
        batch(x.dim(0)),
        rows(NormFormat(x) == MemoryFormat::kChannelsLast || inner == 1) {}
  int64_t channels, inner, batch;
  bool rows;
};

constexpr int64_t kLanes = 64;
constexpr int64_t kBlockElements = 64 * 1024;

int64_t RowsPerBlock(int64_t channels) {
  return std::max<int64_t>(4, kBlockElements / std::max<int64_t>(channels, 1));
}

// A run of equal rows in the tensors of x's size. `channel` is the channel
// whose coefficients all columns share, or -1 if each column is a channel.
struct Run {
  int64_t offset, rows, width, channel;
};

// Calls body(Run) for the whole rows of a plane and for the rest.
template <typename Body>
void ForEachRunOfPlane(const Layout& layout, int64_t n, int64_t channel,
                       Body body) {
  const int64_t offset = (n * layout.channels + channel) * layout.inner;
  const int64_t whole = layout.inner / kLanes;
  if (whole > 0) body(Run{offset, whole, kLanes, channel});
  const int64_t rest = layout.inner % kLanes;
  if (rest > 0) body(Run{offset + whole * kLanes, 1, rest, channel});
}

// One channel's coefficient, repeated for the columns of its planes.
template <typename T>
class Column {
 public:
  Column(const Tensor& values, const Run& run) {
    if (!values.defined()) return;
    const T* data = values.data<T>();
    data_ = data;
    if (run.channel < 0) return;
    spread_.fill(data[run.channel]);
    data_ = spread_.data();
  }
  Column(const Column&) = delete;
  const T* data() const { return data_; }

 private:
  std::array<T, kLanes> spread_;
  const T* data_ = nullptr;
};

template <typename T>
T* DataAt(const Tensor& tensor, const Run& run) {
  return tensor.defined() ? tensor.data<T>() + run.offset : nullptr;
}

// Calls body(Run) over all of x, in parallel.
template <typename Body>
void ForEachRun(const Layout& layout, Body body) {
  if (layout.rows) {
    const int64_t rows = layout.batch * layout.inner;
    const int64_t channels = layout.channels;
    ParallelFor(rows, RowsPerBlock(channels) / 4 + 1,
                [&](int64_t begin, int64_t end) {
                  body(Run{begin * channels, end - begin, channels, -1});
                });
    return;
  }
  const int64_t planes = layout.batch * layout.channels;
  ParallelFor(planes,
              kBlockElements / 4 / std::max<int64_t>(layout.inner, 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t plane = begin; plane < end; ++plane) {
                  ForEachRunOfPlane(layout, plane / layout.channels,
                                    plane % layout.channels, body);
                }
              });
}

// Each block of rows has its own sums, which are added in the order of the
// blocks.
template <typename T, typename Body>
void SumRowBlocks(const Layout& layout, double* totals, Body body) {
  const int64_t channels = layout.channels;
  const int64_t rows = layout.batch * layout.inner;
  const int64_t step = RowsPerBlock(channels);
  const int64_t blocks = (rows + step - 1) / step;
  const Tensor sums =
      Tensor::Empty(Shape({blocks, 2 * channels}), {.dtype = DType::kF64});
  double* data = sums.data<double>();
  ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> partial(static_cast<size_t>(2 * channels), T(0));
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * step;
      double* own = data + block * 2 * channels;
      std::fill_n(own, 2 * channels, 0.0);
      body(Run{first * channels, std::min(step, rows - first), channels, -1},
           partial.data(), own);
    }
  });
  std::fill_n(totals, 2 * channels, 0.0);
  for (int64_t block = 0; block < blocks; ++block) {
    const double* own = data + block * 2 * channels;
    for (int64_t i = 0; i < 2 * channels; ++i) totals[i] += own[i];
  }
}

template <typename T, typename Body>
void SumPlanes(const Layout& layout, double* totals, Body body) {
  auto sum_channel = [&](int64_t channel) {
    std::array<T, 2 * kLanes> partial = {};
    double first = 0, second = 0;
    for (int64_t n = 0; n < layout.batch; ++n) {
      ForEachRunOfPlane(layout, n, channel, [&](const Run& run) {
        std::array<double, 2 * kLanes> sums = {};
        body(run, partial.data(), sums.data());
        for (int64_t i = 0; i < run.width; ++i) first += sums[i];
        for (int64_t i = 0; i < run.width; ++i) second += sums[run.width + i];
      });
    }
    totals[channel] = first;
    totals[layout.channels + channel] = second;
  };
  ParallelFor(layout.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel)
      sum_channel(channel);
  });
}

// Returns the per-channel totals [2, C] of body(Run, partial, sums), which adds
// to sums.
template <typename T, typename Body>
Tensor SumRuns(const Layout& layout, Body body) {
  Tensor totals =
      Tensor::Empty(Shape({2, layout.channels}), {.dtype = DType::kF64});
  if (layout.rows) {
    SumRowBlocks<T>(layout, totals.data<double>(), body);
  } else {
    SumPlanes<T>(layout, totals.data<double>(), body);
  }
  return totals;
}

Tensor EmptyLikeNorm(const Tensor& x) {
  return Tensor::Empty(x.shape(),
                       {.dtype = x.dtype(), .format = NormFormat(x)});
}

template <typename T>
Tensor MomentsOf(const Tensor& x, const Tensor& center) {
  return SumRuns<T>(Layout(x), [&](const Run& run, T* partial, double* sums) {
    const Column<T> centers(center, run);
    RunSimd(SumMoments<T>(), static_cast<const T*>(DataAt<T>(x, run)), run.rows,
            run.width, centers.data(), partial, sums);
  });
}

template <typename T, bool kRelu, bool kResidual>
Tensor Applied(const Tensor& x, const Tensor& residual, const Tensor& scale,
               const Tensor& shift) {
  Tensor y = EmptyLikeNorm(x);
  ForEachRun(Layout(x), [&](const Run& run) {
    const Column<T> scales(scale, run), shifts(shift, run);
    RunSimd(ApplyNorm<T, kRelu, kResidual>(),
            static_cast<const T*>(DataAt<T>(x, run)),
            static_cast<const T*>(DataAt<T>(residual, run)), DataAt<T>(y, run),
            run.rows, run.width, scales.data(), shifts.data());
  });
  return y;
}

template <typename T>
Tensor AppliedAs(const Tensor& x, const Tensor& residual, const Tensor& scale,
                 const Tensor& shift, bool relu) {
  if (residual.defined()) {
    return relu ? Applied<T, true, true>(x, residual, scale, shift)
                : Applied<T, false, true>(x, residual, scale, shift);
  }
  return relu ? Applied<T, true, false>(x, residual, scale, shift)
              : Applied<T, false, false>(x, residual, scale, shift);
}

// Returns a valid tensor even for kernels that do not read y.
const Tensor& OutputOr(const NormMask& mask, const Tensor& x) {
  return mask.y.defined() ? mask.y : x;
}

template <typename T, ReluMask kMask, bool kKeep>
Tensor GradientSums(const Tensor& dy, const Tensor& x, const Tensor& center,
                    const NormMask& mask, const Tensor& g) {
  return SumRuns<T>(Layout(x), [&](const Run& run, T* partial, double* sums) {
    const Column<T> centers(center, run), scales(mask.scale, run),
        shifts(mask.shift, run);
    RunSimd(SumGradients<T, kMask, kKeep>(),
            static_cast<const T*>(DataAt<T>(dy, run)),
            static_cast<const T*>(DataAt<T>(x, run)),
            static_cast<const T*>(DataAt<T>(OutputOr(mask, x), run)),
            DataAt<T>(g, run), run.rows, run.width, centers.data(),
            scales.data(), shifts.data(), partial, sums);
  });
}

template <typename T, ReluMask kMask>
Tensor InputGradientOf(const Tensor& dy, const Tensor& x, const NormMask& mask,
                       const Tensor& slope, const Tensor& offset) {
  Tensor dx = EmptyLikeNorm(x);
  ForEachRun(Layout(x), [&](const Run& run) {
    const Column<T> scales(mask.scale, run), shifts(mask.shift, run),
        slopes(slope, run), offsets(offset, run);
    RunSimd(InputGradient<T, kMask>(),
            static_cast<const T*>(DataAt<T>(dy, run)),
            static_cast<const T*>(DataAt<T>(x, run)),
            static_cast<const T*>(DataAt<T>(OutputOr(mask, x), run)),
            DataAt<T>(dx, run), run.rows, run.width, scales.data(),
            shifts.data(), slopes.data(), offsets.data());
  });
  return dx;
}

// Calls fn with the mask's kind as a compile-time constant.
template <typename Fn>
Tensor VisitMask(const NormMask& mask, Fn fn) {
  if (!mask.relu) {
    return fn(std::integral_constant<ReluMask, ReluMask::kNone>());
  }
  if (mask.y.defined()) {
    return fn(std::integral_constant<ReluMask, ReluMask::kOutput>());
  }
  return fn(std::integral_constant<ReluMask, ReluMask::kInput>());
}

}  // namespace

MemoryFormat NormFormat(const Tensor& x) {
  return x.rank() == 4 ? x.SuggestFormat() : MemoryFormat::kContiguous;
}

Tensor NormCenter(const Tensor& x) {
  Tensor first = x.Slice(0, 0, 1);
  for (int axis = 2; axis < x.rank(); ++axis) first = first.Slice(axis, 0, 1);
  return first.Contiguous().Reshape(Shape({x.dim(1)}));
}

Tensor NormMoments(const Tensor& x, const Tensor& center) {
  return VisitReal(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    return MomentsOf<T>(x, center);
  });
}

Tensor NormApply(const Tensor& x, const Tensor& residual, const Tensor& scale,
                 const Tensor& shift, bool relu) {
  return VisitReal(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    return AppliedAs<T>(x, residual, scale, shift, relu);
  });
}

Tensor NormGradientSums(const Tensor& dy, const Tensor& x, const Tensor& center,
                        const NormMask& mask, const Tensor& g) {
  return VisitReal(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    return VisitMask(mask, [&](auto kind) {
      return g.defined()
                 ? GradientSums<T, kind(), true>(dy, x, center, mask, g)
                 : GradientSums<T, kind(), false>(dy, x, center, mask, g);
    });
  });
}

Tensor NormInputGradient(const Tensor& dy, const Tensor& x,
                         const NormMask& mask, const Tensor& slope,
                         const Tensor& offset) {
  return VisitReal(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    return VisitMask(mask, [&](auto kind) {
      return InputGradientOf<T, kind()>(dy, x, mask, slope, offset);
    });
  });
}

}  // namespace baton::cpu
