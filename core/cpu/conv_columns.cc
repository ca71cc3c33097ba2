// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "core/cpu/conv.h"
#include "core/cpu/gemm.h"

// The patches of each image become the columns of a matrix, so that a
// convolution is one product for each image and group.
namespace baton::cpu {
namespace {

struct Geometry {
  Geometry(const Shape& x, const Shape& weight,
           const ops::Conv2dOptions& options_in)
      : options(options_in),
        batch(x[0]),
        groups(options.groups),
        channels(weight[1]),
        height(x[2]),
        width(x[3]),
        outputs(weight[0] / groups),
        kernel_h(weight[2]),
        kernel_w(weight[3]),
        out_h(Cells(height, kernel_h, 0)),
        out_w(Cells(width, kernel_w, 1)) {}

  int64_t Cells(int64_t size, int64_t kernel, size_t i) const {
    const int64_t reach = options.dilation[i] * (kernel - 1) + 1;
    return (size + 2 * options.padding[i] - reach) / options.stride[i] + 1;
  }
  int64_t taps() const { return channels * kernel_h * kernel_w; }
  int64_t cells() const { return out_h * out_w; }
  int64_t in_size() const { return channels * height * width; }
  int64_t out_size() const { return outputs * cells(); }
  int64_t weight_size() const { return outputs * taps(); }
  int64_t parts() const { return batch * groups; }

  ops::Conv2dOptions options;
  int64_t batch, groups;
  int64_t channels, height, width;  // of one group
  int64_t outputs, kernel_h, kernel_w;
  int64_t out_h, out_w;
};

// Calls body(tap, cell, pixel) for each pair of tap and cell inside the image.
template <typename Body>
void ForEachPixel(const Geometry& g, Body body) {
  const auto& o = g.options;
  for (int64_t tap = 0; tap < g.taps(); ++tap) {
    const int64_t kw = tap % g.kernel_w;
    const int64_t kh = tap / g.kernel_w % g.kernel_h;
    const int64_t channel = tap / (g.kernel_w * g.kernel_h);
    for (int64_t cell = 0; cell < g.cells(); ++cell) {
      const int64_t h =
          cell / g.out_w * o.stride[0] - o.padding[0] + kh * o.dilation[0];
      const int64_t w =
          cell % g.out_w * o.stride[1] - o.padding[1] + kw * o.dilation[1];
      if (h < 0 || h >= g.height || w < 0 || w >= g.width) continue;
      body(tap, cell, (channel * g.height + h) * g.width + w);
    }
  }
}

// Fills columns [taps, cells].
void ToColumns(const Geometry& g, const double* image, double* columns) {
  std::fill_n(columns, g.taps() * g.cells(), 0.0);
  ForEachPixel(g, [&](int64_t tap, int64_t cell, int64_t pixel) {
    columns[tap * g.cells() + cell] = image[pixel];
  });
}

void AddColumns(const Geometry& g, const double* columns, double* image) {
  ForEachPixel(g, [&](int64_t tap, int64_t cell, int64_t pixel) {
    image[pixel] += columns[tap * g.cells() + cell];
  });
}

Tensor Columns(const Geometry& g) {
  return Tensor::Empty(Shape({g.taps(), g.cells()}), {.dtype = DType::kF64});
}

void AddBias(const Geometry& g, const double* bias, double* y) {
  for (int64_t plane = 0; plane < g.parts() * g.outputs; ++plane) {
    const double value = bias[plane % (g.groups * g.outputs)];
    double* row = y + plane * g.cells();
    for (int64_t i = 0; i < g.cells(); ++i) row[i] += value;
  }
}

}  // namespace

Tensor ConvForwardF64(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const ops::Conv2dOptions& options) {
  const Geometry g(x.shape(), weight.shape(), options);
  const Tensor dense_x = x.Contiguous(), dense_w = weight.Contiguous();
  const Tensor columns = Columns(g);
  Tensor y = Tensor::Empty(Shape({g.batch, weight.dim(0), g.out_h, g.out_w}),
                           {.dtype = DType::kF64});
  for (int64_t part = 0; part < g.parts(); ++part) {
    ToColumns(g, dense_x.data<double>() + part * g.in_size(),
              columns.data<double>());
    const double* w =
        dense_w.data<double>() + part % g.groups * g.weight_size();
    Gemm(g.outputs, g.cells(), g.taps(), Operand<double>{w, g.taps()},
         Operand<double>{columns.data<double>(), g.cells()}, 0.0,
         y.data<double>() + part * g.out_size(), g.cells());
  }
  if (bias.defined())
    AddBias(g, bias.Contiguous().data<double>(), y.data<double>());
  return y.Contiguous(x.SuggestFormat());
}

Tensor ConvBackwardInputF64(const Tensor& dy, const Tensor& weight,
                            const Shape& x_shape,
                            const ops::Conv2dOptions& options) {
  const Geometry g(x_shape, weight.shape(), options);
  const Tensor dense_dy = dy.Contiguous(), dense_w = weight.Contiguous();
  const Tensor columns = Columns(g);
  Tensor dx = Tensor::Zeros(x_shape, {.dtype = DType::kF64});
  for (int64_t part = 0; part < g.parts(); ++part) {
    const double* w =
        dense_w.data<double>() + part % g.groups * g.weight_size();
    Gemm(g.taps(), g.cells(), g.outputs, Operand<double>{w, g.taps(), true},
         Operand<double>{dense_dy.data<double>() + part * g.out_size(),
                         g.cells()},
         0.0, columns.data<double>(), g.cells());
    AddColumns(g, columns.data<double>(),
               dx.data<double>() + part * g.in_size());
  }
  return dx.Contiguous(dy.SuggestFormat());
}

Tensor ConvBackwardWeightF64(const Tensor& dy, const Tensor& x,
                             const Shape& weight_shape,
                             const ops::Conv2dOptions& options,
                             MemoryFormat order) {
  const Geometry g(x.shape(), weight_shape, options);
  const Tensor dense_dy = dy.Contiguous(), dense_x = x.Contiguous();
  const Tensor columns = Columns(g);
  Tensor dweight = Tensor::Zeros(weight_shape, {.dtype = DType::kF64});
  for (int64_t part = 0; part < g.parts(); ++part) {
    ToColumns(g, dense_x.data<double>() + part * g.in_size(),
              columns.data<double>());
    Gemm(g.outputs, g.taps(), g.cells(),
         Operand<double>{dense_dy.data<double>() + part * g.out_size(),
                         g.cells()},
         Operand<double>{columns.data<double>(), g.cells(), true}, 1.0,
         dweight.data<double>() + part % g.groups * g.weight_size(), g.taps());
  }
  return dweight.Contiguous(order);
}

}  // namespace baton::cpu
