// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>

#include "core/cuda/launch.h"
#include "core/cuda/orthonormal.h"

namespace baton::cuda {
namespace {

constexpr int kThreads = 512;
// Rounding leaves less than this fraction of a column that depends on others.
constexpr double kLeast = 1e-6;

// Returns the sum of all threads' values, to all of them.
__device__ double BlockSum(double own) {
  __shared__ double warps[kThreads / 32];
  const auto thread = static_cast<int>(threadIdx.x);
  for (int distance = 16; distance > 0; distance /= 2)
    own += __shfl_xor_sync(~0u, own, distance);
  __syncthreads();  // the last sum has been read
  if (thread % 32 == 0) warps[thread / 32] = own;
  __syncthreads();
  double sum = 0;
  for (const double warp : warps) sum += warp;
  return sum;
}

template <typename T>
struct Columns {
  T* data;
  int64_t rows;
  int count;

  __device__ T& At(int64_t row, int column) const {
    return data[row * count + column];
  }
  __device__ double Dot(int a, int b) const {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < rows; i += kThreads)
      sum += static_cast<double>(At(i, a)) * static_cast<double>(At(i, b));
    return BlockSum(sum);
  }
  // Each thread processes its own rows.
  __device__ void Subtract(int from, double factor, int column) const {
    for (int64_t i = threadIdx.x; i < rows; i += kThreads)
      At(i, column) -=
          static_cast<T>(factor * static_cast<double>(At(i, from)));
  }
  __device__ void Scale(int column, double factor) const {
    for (int64_t i = threadIdx.x; i < rows; i += kThreads) {
      T& value = At(i, column);
      value = static_cast<T>(static_cast<double>(value) * factor);
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    OrthonormaliseKernel(Columns<T> columns) {
  for (int j = 0; j < columns.count; ++j) {
    const double before = sqrt(columns.Dot(j, j));
    for (int pass = 0; pass < 2; ++pass)
      for (int k = 0; k < j; ++k) columns.Subtract(k, columns.Dot(k, j), j);
    const double norm = sqrt(columns.Dot(j, j));
    // The factor is NaN if an element was infinite or NaN.
    columns.Scale(j, norm > kLeast * before ? 1 / norm : 0 * before);
  }
}

template <typename T>
void Run(const Launch& launch, const Tensor& matrix) {
  OrthonormaliseKernel<T><<<1, kThreads, 0, launch.stream()>>>(
      {static_cast<T*>(matrix.raw_data()), matrix.dim(0),
       static_cast<int>(matrix.dim(1))});
  launch.Check();
}

}  // namespace

void OrthonormaliseColumns(const Tensor& matrix) {
  const Launch launch("orthonormalise_columns", {&matrix}, {});
  if (matrix.dtype() == DType::kF64) {
    Run<double>(launch, matrix);
  } else {
    Run<float>(launch, matrix);
  }
}

}  // namespace baton::cuda
