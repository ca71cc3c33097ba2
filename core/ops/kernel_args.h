// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

// Arguments that ops pass to the kernels of CPUs and GPUs. An op checks its
// arguments and then calls the kernel of the tensors' device
// (core/ops/dispatch.h).
namespace baton {

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kMaximum, kMinimum, kPow };

enum class CompareOp { kEqual, kLess, kLessEqual };

enum class UnaryOp { kNeg, kAbs, kExp, kLog, kSqrt, kSin, kCos };

enum class Activation { kRelu, kSigmoid, kTanh, kGelu, kSilu };

// Kernels find the greatest (or least) elements along an axis, whose extent
// must not be 0, and the first position of each. The results have extent 1
// there. NaN counts as both greatest and least.
enum class Extreme { kMax, kMin };

// Kernels compute out[.., index[.., i, ..], ..] = source[.., i, ..], or += with
// kAdd; for equal indices in the order of i.
enum class ScatterMode { kAssign, kAdd };

// The pooling windows along an axis: each of `cells` output cells reads one
// window of an input of `size` elements. With a kernel size every window has
// this size, less the part outside of the input. With kernel = 0 the pooling is
// adaptive: cell i reads floor(i * size / cells) .. ceil((i + 1) * size /
// cells). Int must be able to hold (cells + 1) * (size + 1).
template <typename Int>
struct WindowAxis {
  Int size = 0, cells = 0;
  Int kernel = 0, stride = 1, padding = 0;

  // A cell's window is [Start, End).
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
  // The cells whose windows contain an element are [FirstCell, EndCell).
  constexpr Int FirstCell(Int element) const {
    if (kernel == 0) return cells == 1 ? 0 : element * cells / size;
    // A window that begins at `before` ends just before the element.
    const Int before = element + padding - kernel;
    return before < 0 ? 0 : before / stride + 1;
  }
  constexpr Int EndCell(Int element) const {
    if (kernel == 0)
      return cells == 1 ? 1 : ((element + 1) * cells + size - 1) / size;
    const Int end = (element + padding) / stride + 1;
    return end < cells ? end : cells;
  }
};

// Mean pooling divides the sum of each window by `divisor` or, if that is 0, by
// the window's size.
struct Windows {
  WindowAxis<int64_t> rows, columns;
  int64_t divisor = 0;
};

// The weights of attention are softmax(scores [.., T, S] * scale) over the keys
// that a query attends to.
struct AttentionRows {
  double scale = 1;         // > 0
  bool causal = false;      // query i attends to keys 0 .. i only
  int64_t first_query = 0;  // the number of the first row
};

}  // namespace baton
