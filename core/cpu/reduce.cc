// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/reduce.h"

#include <memory>
#include <type_traits>

#include "core/cpu/copy.h"
#include "core/cpu/lanes.h"
#include "core/cpu/simd.h"
#include "core/cpu/strided.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

// The number of elements in one partial sum.
constexpr int64_t kBlock = 65536;
constexpr int64_t kTile = 512;  // columns summed at a time

// Lane is the type of a partial sum of up to kBlock elements, Total that of the
// sum of partial sums.
template <typename T>
using Lane = std::conditional_t<
    std::is_integral_v<T>, int64_t,
    std::conditional_t<std::is_same_v<T, double>, double, float>>;
template <typename T>
using Total = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
template <typename T>
using SumType = std::conditional_t<std::is_integral_v<T>, int64_t, T>;

template <typename L>
BATON_SIMD_INLINE L Plus(L a, L b) {
  if constexpr (std::is_integral_v<L>) {
    return static_cast<L>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

struct SumRow {
  template <typename T>
  BATON_SIMD_INLINE void operator()(const T* x, int64_t stride, int64_t count,
                                    Total<T>* total) const {
    using L = Lane<T>;
    const auto plus = [](L a, L b) { return Plus(a, b); };
    const L sum =
        stride == 1
            ? ReduceLanes<L>(
                  count, 0, [x](int64_t i) { return Convert<L>(x[i]); }, plus)
            : ReduceLanes<L>(
                  count, 0,
                  [x, stride](int64_t i) { return Convert<L>(x[i * stride]); },
                  plus);
    *total = Plus<Total<T>>(*total, sum);
  }
};

// Computes sums[j] += x[row * stride + j], four rows at a time.
struct AddRows {
  template <typename T>
  BATON_SIMD_INLINE void operator()(const T* x, int64_t stride, int64_t rows,
                                    int64_t columns, Lane<T>* sums) const {
    using L = Lane<T>;
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) {
      const T* a = x + row * stride;
      const T* b = a + stride;
      const T* c = b + stride;
      const T* d = c + stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; ++j) {
        sums[j] = Plus(sums[j], Plus(Plus(Convert<L>(a[j]), Convert<L>(b[j])),
                                     Plus(Convert<L>(c[j]), Convert<L>(d[j]))));
      }
    }
    for (; row < rows; ++row) {
      const T* a = x + row * stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; ++j) {
        sums[j] = Plus(sums[j], Convert<L>(a[j]));
      }
    }
  }
};

struct Axes {
  Dims sizes, x_strides, out_strides;
};

// One sum: the axes that are kept, those that are summed, and the number of
// blocks.
template <typename T>
class Summation {
 public:
  Summation(const Axes& kept, const Axes& reduced, const T* x, SumType<T>* out,
            double factor)
      : kept_(Shape(kept.sizes), {&kept.x_strides, &kept.out_strides}),
        reduced_(Shape(reduced.sizes), {&reduced.x_strides}),
        x_(x),
        out_(out),
        factor_(factor) {}

  void Run() {
    const bool by_columns =
        kept_.inner_stride(0) == 1 && kept_.inner_size() >= 8 &&
        (reduced_.inner_stride(0) != 1 || reduced_.numel == 1);
    tile_ = by_columns ? std::min(kTile, kept_.inner_size()) : 1;
    block_ = kBlock / tile_;
    blocks_ = std::max<int64_t>(1, (reduced_.numel + block_ - 1) / block_);
    partial_ = std::make_unique_for_overwrite<Total<T>[]>(
        static_cast<size_t>(blocks_ * kept_.numel));
    if (by_columns) {
      SumColumns();
    } else {
      SumRows();
    }
    Finish();
  }

 private:
  int64_t BlockEnd(int64_t block) const {
    return std::min((block + 1) * block_, reduced_.numel);
  }

  int64_t Grain(int64_t elements) const {
    return std::max<int64_t>(
        1, kGrain / std::max<int64_t>(1, std::min(elements, kBlock)));
  }

  // Runs a job for each (block, output), outputs innermost.
  void SumRows() {
    const int64_t outputs = kept_.numel;
    ParallelFor(blocks_ * outputs, Grain(reduced_.numel),
                [&](int64_t begin, int64_t end) {
                  while (begin < end) {
                    const int64_t block = begin / outputs;
                    const int64_t stop = std::min((block + 1) * outputs, end);
                    SumOutputs(block, begin - block * outputs,
                               stop - block * outputs);
                    begin = stop;
                  }
                });
  }

  void SumOutputs(int64_t block, int64_t begin, int64_t end) {
    Total<T>* partial = partial_.get() + block * kept_.numel + begin;
    WalkRows(kept_, begin, end, [&](const auto& kept_offsets, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const T* x = x_ + kept_offsets[0] + i * kept_.inner_stride(0);
        *partial = 0;
        WalkRows(reduced_, block * block_, BlockEnd(block),
                 [&](const auto& offsets, int64_t length) {
                   RunSimd(SumRow{}, x + offsets[0], reduced_.inner_stride(0),
                           length, partial);
                 });
        ++partial;
      }
    });
  }

  // Runs a job for each (block, outer kept index, tile), tiles innermost.
  void SumColumns() {
    const int64_t columns = kept_.inner_size();
    const int64_t tiles = (columns + tile_ - 1) / tile_;
    const int64_t strips = kept_.numel / columns * tiles;
    ParallelFor(blocks_ * strips, Grain(reduced_.numel * tile_),
                [&](int64_t begin, int64_t end) {
                  for (int64_t job = begin; job < end; ++job) {
                    const int64_t strip = job % strips;
                    const int64_t first =
                        strip / tiles * columns + strip % tiles * tile_;
                    const int64_t width =
                        std::min(tile_, columns - strip % tiles * tile_);
                    SumStrip(job / strips, first, width);
                  }
                });
  }

  void SumStrip(int64_t block, int64_t first, int64_t width) {
    alignas(64) Lane<T> sums[kTile] = {};
    WalkRows(kept_, first, first + width, [&](const auto& kept, int64_t) {
      WalkRows(reduced_, block * block_, BlockEnd(block),
               [&](const auto& offsets, int64_t rows) {
                 RunSimd(AddRows{}, x_ + kept[0] + offsets[0],
                         reduced_.inner_stride(0), rows, width,
                         static_cast<Lane<T>*>(sums));
               });
    });
    std::copy_n(sums, width, partial_.get() + block * kept_.numel + first);
  }

  // Adds up the blocks, in order.
  void Finish() {
    ParallelFor(kept_.numel, Grain(blocks_), [&](int64_t begin, int64_t end) {
      int64_t index = begin;
      WalkRows(kept_, begin, end, [&](const auto& offsets, int64_t count) {
        for (int64_t i = 0; i < count; ++i, ++index) {
          Total<T> total = 0;
          for (int64_t b = 0; b < blocks_; ++b) {
            total = Plus(
                total, partial_[static_cast<size_t>(b * kept_.numel + index)]);
          }
          out_[offsets[1] + i * kept_.inner_stride(1)] = Scaled(total);
        }
      });
    });
  }

  SumType<T> Scaled(Total<T> total) const {
    if constexpr (std::is_integral_v<T>) {
      return total;
    } else {
      return Convert<T>(total * factor_);
    }
  }

  const StridedLoop<2> kept_;     // operands: x, out
  const StridedLoop<1> reduced_;  // x
  const T* const x_;
  SumType<T>* const out_;
  const double factor_;
  int64_t tile_ = 1;
  int64_t block_ = 1;  // steps of reduced_ in a block
  int64_t blocks_ = 1;
  std::unique_ptr<Total<T>[]> partial_;  // [blocks][kept]
};

struct SquareDifferenceRow {
  template <typename T>
  BATON_SIMD_INLINE void operator()(const T* x, const T* y, int64_t count,
                                    double* sum) const {
    using L = Lane<T>;
    *sum = ReduceLanes<L>(
        count, 0,
        [x, y](int64_t i) {
          const L difference = Convert<L>(x[i]) - Convert<L>(y[i]);
          return difference * difference;
        },
        [](L a, L b) { return a + b; });
  }
};

}  // namespace

void SumAxes(const Tensor& out, const Tensor& x,
             const std::vector<bool>& reduced, double factor) {
  if (out.numel() == 0) return;
  Axes kept_axes;
  Axes reduced_axes;
  for (size_t d = 0; d < reduced.size(); ++d) {
    Axes& axes = reduced[d] ? reduced_axes : kept_axes;
    axes.sizes.push_back(x.shape().dims()[d]);
    axes.x_strides.push_back(x.strides()[d]);
    axes.out_strides.push_back(out.strides()[d]);
  }
  VisitDType(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Summation<T>(kept_axes, reduced_axes, static_cast<const T*>(x.raw_data()),
                 out.data<SumType<T>>(), factor)
        .Run();
  });
}

void MeanSquaredDifference(const Tensor& mean, const Tensor& x,
                           const Tensor& y) {
  const int64_t count = x.numel();
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<double> partial(static_cast<size_t>(blocks));
  VisitFloating("mse_loss", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* p = static_cast<const T*>(x.raw_data());
    const T* q = static_cast<const T*>(y.raw_data());
    ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * kBlock;
        RunSimd(SquareDifferenceRow{}, p + first, q + first,
                std::min(kBlock, count - first),
                &partial[static_cast<size_t>(b)]);
      }
    });
  });
  double sum = 0;
  for (double part : partial) sum += part;
  Fill(mean, sum / static_cast<double>(count));
}

}  // namespace baton::cpu
