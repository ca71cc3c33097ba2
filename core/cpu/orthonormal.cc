// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/orthonormal.h"

#include <cmath>
#include <numeric>
#include <vector>

namespace baton::cpu {
namespace {

using Column = std::vector<double>;

// Rounding leaves less than this fraction of a column that depends on others.
constexpr double kLeast = 1e-6;

double Dot(const Column& a, const Column& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void Subtract(const Column& from, double factor, Column& column) {
  for (size_t i = 0; i < column.size(); ++i) column[i] -= factor * from[i];
}

}  // namespace

void OrthonormaliseColumns(const Tensor& matrix) {
  const auto count = static_cast<size_t>(matrix.dim(1));
  std::vector<Column> columns;
  for (size_t j = 0; j < count; ++j) {
    Column column = matrix.Select(1, static_cast<int64_t>(j))
                        .To(DType::kF64)
                        .ToVector<double>();
    const double before = std::sqrt(Dot(column, column));
    for (int pass = 0; pass < 2; ++pass)
      for (const Column& other : columns)
        Subtract(other, Dot(other, column), column);
    const double norm = std::sqrt(Dot(column, column));
    // The factor is NaN if an element was infinite or NaN.
    const double factor = norm > kLeast * before ? 1 / norm : 0 * before;
    for (double& value : column) value *= factor;
    matrix.Select(1, static_cast<int64_t>(j)).CopyFrom(Tensor::From(column));
    columns.push_back(std::move(column));
  }
}

}  // namespace baton::cpu
