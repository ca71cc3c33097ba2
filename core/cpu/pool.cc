// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/pool.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/cpu/simd.h"
#include "core/dtype_visit.h"
#include "core/parallel.h"

// Every tensor is treated as [images, height, width, lanes]: if channels-last,
// the lanes are the channels; otherwise there is one lane, and N * C images.
namespace baton::cpu {
namespace {

struct Grid {
  Grid(const Shape& shape, MemoryFormat format)
      : images(shape[0]), height(shape[2]), width(shape[3]), lanes(shape[1]) {
    if (format == MemoryFormat::kChannelsLast) return;
    images *= lanes;
    lanes = 1;
  }
  int64_t at(int64_t image, int64_t row, int64_t column) const {
    return ((image * height + row) * width + column) * lanes;
  }
  int64_t rows() const { return images * height; }
  int64_t images, height, width, lanes;
};

// Sets y = x and position = tap if x is greater, or NaN.
template <typename T>
struct TakeMaximum {
  BATON_SIMD_INLINE void operator()(const T* __restrict x, T* __restrict y,
                                    int32_t* __restrict position, int32_t tap,
                                    int64_t lanes) const {
    for (int64_t i = 0; i < lanes; ++i) {
      const bool take = !(x[i] <= y[i]) && y[i] == y[i];
      y[i] = take ? x[i] : y[i];
      position[i] = take ? tap : position[i];
    }
  }
};

// Computes dx += dy if the maximum came from this tap.
template <typename T>
struct AddWhereTap {
  BATON_SIMD_INLINE void operator()(const T* __restrict dy,
                                    const int32_t* __restrict position,
                                    T* __restrict dx, int32_t tap,
                                    int64_t lanes) const {
    for (int64_t i = 0; i < lanes; ++i)
      dx[i] += position[i] == tap ? dy[i] : T(0);
  }
};

template <typename T>
struct AddScaled {
  BATON_SIMD_INLINE void operator()(const T* __restrict source,
                                    T* __restrict target, T factor,
                                    int64_t lanes) const {
    for (int64_t i = 0; i < lanes; ++i) target[i] += source[i] * factor;
  }
};

int64_t RowGrain(const Grid& grid) {
  return 16384 / std::max<int64_t>(grid.width * grid.lanes, 1) + 1;
}

// Calls body(image, row) for every row of `grid`, in parallel.
template <typename Body>
void ForEachRow(const Grid& grid, Body body) {
  ParallelFor(grid.rows(), RowGrain(grid), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      body(i / grid.height, i % grid.height);
  });
}

// The taps of a window [start, start + kernel) that lie inside [0, size).
struct Taps {
  Taps(int64_t cell, int64_t stride, int64_t padding, int64_t kernel,
       int64_t size)
      : start(cell * stride - padding),
        first(std::max<int64_t>(0, -start)),
        last(std::min(kernel, size - start)) {}
  int64_t start, first, last;
};

template <typename T>
void MaxCell(const T* x, const Grid& in, int64_t image, const Taps& rows,
             const Taps& columns, int64_t kernel_width, T* y,
             int32_t* position) {
  bool first = true;
  for (int64_t kh = rows.first; kh < rows.last; ++kh) {
    for (int64_t kw = columns.first; kw < columns.last; ++kw) {
      const T* source = x + in.at(image, rows.start + kh, columns.start + kw);
      const auto tap = static_cast<int32_t>(kh * kernel_width + kw);
      if (first) {
        std::copy_n(source, in.lanes, y);
        std::fill_n(position, in.lanes, tap);
        first = false;
      } else {
        RunSimd(TakeMaximum<T>(), source, y, position, tap, in.lanes);
      }
    }
  }
}

template <typename T>
void MaxForward(const Tensor& x, const Grid& in, const Grid& out,
                const ops::Pool2dOptions& o,
                const ops::MaxPool2dResult& result) {
  const T* source = x.data<T>();
  T* y = result.y.data<T>();
  int32_t* position = result.workspace.data<int32_t>();
  ForEachRow(out, [&](int64_t image, int64_t row) {
    const Taps rows(row, o.stride[0], o.padding[0], o.kernel[0], in.height);
    for (int64_t column = 0; column < out.width; ++column) {
      const Taps columns(column, o.stride[1], o.padding[1], o.kernel[1],
                         in.width);
      const int64_t at = out.at(image, row, column);
      MaxCell(source, in, image, rows, columns, o.kernel[1], y + at,
              position + at);
    }
  });
}

// The cells whose windows contain `place`: [first, last).
struct Cells {
  Cells(int64_t place, int64_t stride, int64_t padding, int64_t kernel,
        int64_t count) {
    const int64_t end = place + padding;  // tap 0 of a window that starts here
    first = end < kernel ? 0 : (end - kernel) / stride + 1;
    last = std::min(count, end / stride + 1);
  }
  int64_t first, last;
};

// Gathers gradients, so that each element of dx has one writer and a fixed
// order of additions.
template <typename T>
void MaxBackward(const Tensor& dy, const Tensor& workspace, const Grid& in,
                 const Grid& out, const ops::Pool2dOptions& o,
                 const Tensor& dx) {
  const T* source = dy.data<T>();
  const int32_t* position = workspace.data<int32_t>();
  T* target = dx.data<T>();
  ForEachRow(in, [&](int64_t image, int64_t h) {
    const Cells rows(h, o.stride[0], o.padding[0], o.kernel[0], out.height);
    for (int64_t w = 0; w < in.width; ++w) {
      const Cells columns(w, o.stride[1], o.padding[1], o.kernel[1], out.width);
      T* sum = target + in.at(image, h, w);
      std::fill_n(sum, in.lanes, T(0));
      for (int64_t row = rows.first; row < rows.last; ++row) {
        const int64_t kh = h + o.padding[0] - row * o.stride[0];
        for (int64_t c = columns.first; c < columns.last; ++c) {
          const int64_t kw = w + o.padding[1] - c * o.stride[1];
          const int64_t at = out.at(image, row, c);
          RunSimd(AddWhereTap<T>(), source + at, position + at, sum,
                  static_cast<int32_t>(kh * o.kernel[1] + kw), in.lanes);
        }
      }
    }
  });
}

template <typename T>
T Factor(const Windows& windows, int64_t row, int64_t column) {
  const int64_t own =
      (windows.rows.End(row) - windows.rows.Start(row)) *
      (windows.columns.End(column) - windows.columns.Start(column));
  return T(1) / static_cast<T>(windows.divisor > 0 ? windows.divisor : own);
}

// Calls body(h, w) for the pixels of a cell's window.
template <typename Body>
void ForEachPixel(const Windows& windows, int64_t row, int64_t column,
                  Body body) {
  for (int64_t h = windows.rows.Start(row); h < windows.rows.End(row); ++h) {
    for (int64_t w = windows.columns.Start(column);
         w < windows.columns.End(column); ++w) {
      body(h, w);
    }
  }
}

template <typename T>
void MeanForward(const Tensor& x, const Grid& in, const Grid& out,
                 const Windows& windows, const Tensor& y) {
  const T* source = x.data<T>();
  T* target = y.data<T>();
  ForEachRow(out, [&](int64_t image, int64_t row) {
    for (int64_t column = 0; column < out.width; ++column) {
      T* mean = target + out.at(image, row, column);
      std::fill_n(mean, out.lanes, T(0));
      const T factor = Factor<T>(windows, row, column);
      ForEachPixel(windows, row, column, [&](int64_t h, int64_t w) {
        RunSimd(AddScaled<T>(), source + in.at(image, h, w), mean, factor,
                in.lanes);
      });
    }
  });
}

// Windows may overlap, so one thread scatters all gradients of an image.
template <typename T>
void MeanBackward(const Tensor& dy, const Grid& in, const Grid& out,
                  const Windows& windows, const Tensor& dx) {
  const T* source = dy.data<T>();
  T* target = dx.data<T>();
  auto scatter = [&](int64_t image, int64_t row, int64_t column) {
    const T* gradient = source + out.at(image, row, column);
    const T factor = Factor<T>(windows, row, column);
    ForEachPixel(windows, row, column, [&](int64_t h, int64_t w) {
      RunSimd(AddScaled<T>(), gradient, target + in.at(image, h, w), factor,
              in.lanes);
    });
  };
  ParallelFor(in.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      std::fill_n(target + in.at(image, 0, 0), in.at(1, 0, 0), T(0));
      for (int64_t row = 0; row < out.height; ++row) {
        for (int64_t column = 0; column < out.width; ++column)
          scatter(image, row, column);
      }
    }
  });
}

Shape WindowsShape(const Shape& x, const Windows& windows) {
  return Shape({x[0], x[1], windows.rows.cells, windows.columns.cells});
}

}  // namespace

ops::MaxPool2dResult MaxPool(const Tensor& x, const Shape& y_shape,
                             const ops::Pool2dOptions& options) {
  const MemoryFormat format = x.SuggestFormat();
  const Tensor dense = x.Contiguous(format);
  ops::MaxPool2dResult result = {
      .y = Tensor::Empty(y_shape, {.dtype = x.dtype(), .format = format}),
      .workspace =
          Tensor::Empty(y_shape, {.dtype = DType::kI32, .format = format})};
  VisitReal(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    MaxForward<T>(dense, Grid(x.shape(), format), Grid(y_shape, format),
                  options, result);
  });
  return result;
}

Tensor MaxPoolBackward(const Tensor& dy, const Tensor& workspace,
                       const Shape& x_shape,
                       const ops::Pool2dOptions& options) {
  const MemoryFormat format = workspace.SuggestFormat();
  const Tensor dense = dy.Contiguous(format);
  const Tensor positions = workspace.Contiguous(format);
  Tensor dx = Tensor::Empty(x_shape, {.dtype = dy.dtype(), .format = format});
  VisitReal(dy.dtype(), [&]<typename T>(std::type_identity<T>) {
    MaxBackward<T>(dense, positions, Grid(x_shape, format),
                   Grid(dy.shape(), format), options, dx);
  });
  return dx;
}

Tensor MeanPool(const Tensor& x, const Windows& windows) {
  const MemoryFormat format = x.SuggestFormat();
  const Tensor dense = x.Contiguous(format);
  const Shape y_shape = WindowsShape(x.shape(), windows);
  Tensor y = Tensor::Empty(y_shape, {.dtype = x.dtype(), .format = format});
  VisitReal(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    MeanForward<T>(dense, Grid(x.shape(), format), Grid(y_shape, format),
                   windows, y);
  });
  return y;
}

Tensor MeanPoolBackward(const Tensor& dy, const Shape& x_shape,
                        const Windows& windows, MemoryFormat format) {
  const Tensor dense = dy.Contiguous(format);
  Tensor dx = Tensor::Empty(x_shape, {.dtype = dy.dtype(), .format = format});
  VisitReal(dy.dtype(), [&]<typename T>(std::type_identity<T>) {
    MeanBackward<T>(dense, Grid(x_shape, format), Grid(dy.shape(), format),
                    windows, dx);
  });
  return dx;
}

}  // namespace baton::cpu
