// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

// What ops tell kernels, of whichever device. Ops check arguments, then call
// the kernel of the tensors' device (core/ops/dispatch.h).
namespace baton {

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kMaximum, kMinimum, kPow };

enum class CompareOp { kEqual, kLess, kLessEqual };

enum class UnaryOp { kNeg, kAbs, kExp, kLog, kSqrt, kSin, kCos };

enum class Activation { kRelu, kSigmoid, kTanh, kGelu, kSilu };

// The greatest (or least) elements along `axis`, whose extent is not 0, and
// their first positions. `values` and `indices` have extent 1 there. NaN
// counts as both greatest and least.
enum class Extreme { kMax, kMin };

// out[.., index[.., i, ..], ..] = (or +=) source[.., i, ..], for equal indices
// in the order of i.
enum class ScatterMode { kAssign, kAdd };

// The windows of `cells` cells along an axis of `size` elements. With a kernel
// they are of its size, less what lies outside of the axis. Without (0) cell i
// has floor(i * size / cells) .. ceil((i + 1) * size / cells). Int holds
// (cells + 1) * (size + 1).
template <typename Int>
struct WindowAxis {
  Int size = 0, cells = 0;
  Int kernel = 0, stride = 1, padding = 0;

  // The elements of a cell: [Start, End).
  constexpr Int Start(Int cell) const {
    if (kernel == 0) return cells == 1 ? 0 : cell * size / cells;
    const Int start = cell * stride - padding;
    return start < 0 ? 0 : start;
  }
  constexpr Int End(Int cell) const {
    if (kernel == 0)
      return cells == 1 ? size : ((cell + 1) * size + cells - 1) / cells;
    const Int end = cell * stride - padding + kernel;
    return end < size ? end : size;
  }
  // The cells that hold an element: [FirstCell, EndCell).
  constexpr Int FirstCell(Int element) const {
    if (kernel == 0) return cells == 1 ? 0 : element * cells / size;
    const Int before = element + padding - kernel;  // where a window too early
    return before < 0 ? 0 : before / stride + 1;    // by one starts
  }
  constexpr Int EndCell(Int element) const {
    if (kernel == 0)
      return cells == 1 ? 1 : ((element + 1) * cells + size - 1) / size;
    const Int end = (element + padding) / stride + 1;
    return end < cells ? end : cells;
  }
};

// Means over windows, divided by `divisor`; by the window's own size where that
// is 0.
struct Windows {
  WindowAxis<int64_t> rows, columns;
  int64_t divisor = 0;
};

// How attention's scores [.., T, S] become weights: softmax(scores * scale)
// over the keys that a query looks at.
struct AttentionRows {
  double scale = 1;         // > 0
  bool causal = false;      // query i looks at keys 0 .. i
  int64_t first_query = 0;  // the number of the first row
};

}  // namespace baton
