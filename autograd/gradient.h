// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "core/ops/rows.h"
#include "core/tensor.h"

namespace baton {

// The gradient of a leaf: a tensor of the leaf's shape, or only some rows, if
// few rows of a table were looked up (nn::Embedding's sparse); the other rows
// are 0. A handle, like Tensor. Thread-compatible.
class Gradient {
 public:
  Gradient() = default;  // none: defined() is false
  // Implicit, so that plain tensors can be passed as gradients.
  Gradient(Tensor dense)  // NOLINT(google-explicit-constructor)
      : values_(std::move(dense)) {}
  // Coalesced rows (core/ops/rows.h) of a table that has `table_rows` rows.
  Gradient(ops::Rows rows, int64_t table_rows)
      : values_(std::move(rows.values)),
        index_(std::move(rows.index)),
        table_rows_(table_rows) {}

  bool defined() const { return values_.defined(); }
  bool is_rows() const { return index_.defined(); }
  // All stored elements: norms, limits and factors apply to these. Rows: [n,
  // D].
  const Tensor& values() const { return values_; }
  const Tensor& index() const { return index_; }  // for rows, i64 [n]

  Shape shape() const {
    return is_rows() ? Shape({table_rows_, values_.dim(1)}) : values_.shape();
  }
  DType dtype() const { return values_.dtype(); }
  Device device() const { return values_.device(); }
  size_t nbytes() const {
    return values_.nbytes() + (is_rows() ? index_.nbytes() : 0);
  }

  // Returns a gradient of the same form with other values.
  Gradient WithValues(Tensor values) const {
    Gradient other = *this;
    other.values_ = std::move(values);
    return other;
  }
  Gradient To(Device device) const {
    Gradient there = WithValues(values_.To(device));
    if (is_rows()) there.index_ = index_.To(device);
    return there;
  }
  // Returns the tensor itself, or a dense copy of the rows with zeros
  // elsewhere.
  Tensor Dense() const {
    if (!is_rows()) return values_;
    Tensor table =
        Tensor::Zeros(shape(), {.dtype = dtype(), .device = device()});
    ops::AddRowsInto(table, {index_, values_});
    return table;
  }

  static constexpr auto Fields() {
    return std::tuple{&Gradient::values_, &Gradient::index_,
                      &Gradient::table_rows_};
  }

 private:
  Tensor values_, index_;
  int64_t table_rows_ = 0;
};

}  // namespace baton
