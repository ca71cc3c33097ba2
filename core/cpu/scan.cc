// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/scan.h"

#include <algorithm>

#include "core/cpu/math.h"
#include "core/cpu/strided.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

// A line along the axis: its number of elements, and their distance in out and
// x.
struct ScannedLine {
  int64_t size, out_stride, x_stride;
};

// Scans `lines` adjacent lines, which begin at out + i * out_step and x + i *
// x_step, so that additions of one line do not wait for those of another.
template <typename T>
void ScanLines(const ScannedLine& line, int64_t lines, T* out, int64_t out_step,
               const T* x, int64_t x_step) {
  using S = std::conditional_t<std::is_integral_v<T>, T, double>;
  constexpr int64_t kMost = 64;
  // Dense lines would each occupy an entry of the TLB.
  const int64_t most = line.x_stride == 1 || line.x_stride == -1 ? 4 : kMost;
  for (int64_t first = 0; first < lines; first += most) {
    const int64_t count = std::min(most, lines - first);
    S sums[kMost] = {};
    for (int64_t k = 0; k < line.size; ++k) {
      T* to = out + first * out_step + k * line.out_stride;
      const T* from = x + first * x_step + k * line.x_stride;
      for (int64_t i = 0; i < count; ++i) {
        sums[i] = Wrapped([](auto a, auto b) { return a + b; }, sums[i],
                          Convert<S>(from[i * x_step]));
        to[i * out_step] = Convert<T>(sums[i]);
      }
    }
  }
}

template <typename T>
void ScanAxis(const Tensor& out, const Tensor& x, int axis, bool reverse) {
  const auto at = static_cast<size_t>(axis);
  ScannedLine line{x.dim(axis), out.strides()[at], x.strides()[at]};
  T* to = out.data<T>();
  const T* from = static_cast<const T*>(x.raw_data());
  if (reverse) {
    to += (line.size - 1) * line.out_stride;
    from += (line.size - 1) * line.x_stride;
    line.out_stride = -line.out_stride;
    line.x_stride = -line.x_stride;
  }
  Dims dims = x.shape().dims();
  dims[at] = 1;
  const StridedLoop<2> starts(Shape(dims), {&out.strides(), &x.strides()});
  const int64_t grain = std::max<int64_t>(1, kGrain / 4 / line.size);
  ForEachRow(starts, grain, [&](const auto& offsets, int64_t count) {
    ScanLines(line, count, to + offsets[0], starts.inner_stride(0),
              from + offsets[1], starts.inner_stride(1));
  });
}

}  // namespace

void CumSum(const Tensor& out, const Tensor& x, int axis, bool reverse) {
  if (out.numel() == 0) return;
  if (out.dtype() == DType::kI64) {
    return ScanAxis<int64_t>(out, x, axis, reverse);
  }
  VisitFloating("cumsum", out.dtype(), [&](auto type) {
    ScanAxis<typename decltype(type)::type>(out, x, axis, reverse);
  });
}

}  // namespace baton::cpu
