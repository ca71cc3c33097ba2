// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/matmul.h"

#include <algorithm>

#include "core/cpu/gemm.h"
#include "core/matrix_view.h"
#include "core/parallel.h"

namespace baton::cpu {
namespace {

// Returns the offset, in elements, of matrix `index` of `tensor`.
int64_t MatrixOffset(const Tensor& tensor, int64_t index) {
  int64_t offset = 0;
  for (int axis = tensor.rank() - 3; axis >= 0; --axis) {
    offset +=
        index % tensor.dim(axis) * tensor.strides()[static_cast<size_t>(axis)];
    index /= tensor.dim(axis);
  }
  return offset;
}

template <typename T>
void MultiplyAll(const Tensor& a, const Tensor& b, const Tensor& out,
                 int64_t matrices) {
  const int64_t m = a.dim(-2), k = a.dim(-1), n = b.dim(-1);
  const MatrixView a_view = ViewMatrix(a), b_view = ViewMatrix(b);
  auto multiply = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Gemm(m, n, k,
           Operand<T>{a.data<T>() + MatrixOffset(a, i), a_view.stride,
                      a_view.transposed},
           Operand<T>{b.data<T>() + MatrixOffset(b, i), b_view.stride,
                      b_view.transposed},
           T(0), out.data<T>() + i * m * n, n);
    }
  };
  // Gemm itself splits one product among threads; many products get a thread
  // each.
  if (matrices < 2 * ComputeThreads()) return multiply(0, matrices);
  ParallelFor(matrices, std::max<int64_t>(1, 32768 / (m * n * k)), multiply);
}

}  // namespace

Tensor BatchedMatmul(const Tensor& a, const Tensor& b, const Shape& batch) {
  Dims dims = batch.dims();
  dims.push_back(a.dim(-2));
  dims.push_back(b.dim(-1));
  const TensorOptions options = {.dtype = a.dtype()};
  Tensor out = Tensor::Empty(Shape(dims), options);
  if (out.numel() == 0) return out;
  if (a.dim(-1) == 0) return Tensor::Zeros(Shape(dims), options);
  const Tensor left = AsMatrices(a, batch), right = AsMatrices(b, batch);
  if (a.dtype() == DType::kF64) {
    MultiplyAll<double>(left, right, out, batch.numel());
  } else {
    MultiplyAll<float>(left, right, out, batch.numel());
  }
  return out;
}

Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Dims dims = x.shape().dims();
  dims.back() = weight.dim(0);
  Tensor y = Tensor::Empty(Shape(dims), {.dtype = x.dtype()});
  if (y.numel() == 0) return y;
  if (bias.defined()) {
    y.CopyFrom(bias);
  } else {
    y.Fill(0);
  }
  const int64_t rows = y.numel() / weight.dim(0);
  const int64_t inputs = weight.dim(1), outputs = weight.dim(0);
  if (inputs == 0) return y;
  const Tensor flat = x.Contiguous();
  const Tensor matrix = AsMatrices(weight);
  auto run = [&](auto zero) {
    using T = decltype(zero);
    const MatrixView w = ViewMatrix(matrix);
    Gemm(rows, outputs, inputs, Operand<T>{flat.data<T>(), inputs},
         Operand<T>{matrix.data<T>(), w.stride, !w.transposed}, T(1),
         y.data<T>(), outputs);
  };
  if (x.dtype() == DType::kF64) {
    run(double());
  } else {
    run(float());
  }
  return y;
}

}  // namespace baton::cpu
