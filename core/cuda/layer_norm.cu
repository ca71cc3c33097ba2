// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "core/cuda/layer_norm.h"
#include "core/cuda/offsets.cuh"
#include "core/cuda/reduce.h"
#include "core/cuda/rows.cuh"

// A group of threads processes a row and reads it three times, the later times
// from the cache: for the mean, for the squares around it, and to write the
// result. The gradients of the parameters are sums over rows: each block sums
// some columns of some rows, and SumAxes adds the parts. If a channel has
// several elements, each block sums one channel.
namespace baton::cuda {
namespace {

constexpr char kNormOp[] = "layer_norm";
constexpr int kLanes = 32;  // adjacent packs that a block sums
constexpr int kWarps = kGroupThreads / kLanes;
constexpr int64_t kMostParts = 128;  // into which the rows are divided

struct Plus {
  template <typename C>
  __device__ __forceinline__ C operator()(C a, C b) const {
    return a + b;
  }
};

__device__ __forceinline__ float InverseRoot(float x) { return 1 / sqrtf(x); }
__device__ __forceinline__ double InverseRoot(double x) { return 1 / sqrt(x); }

template <typename T>
struct Statistics {
  Compute<T>* mean;
  Compute<T>* scale;  // 1 / stddev
};

// How an element finds gamma and beta: it has its own, or its channel has one.
struct ElementGains {
  __device__ __forceinline__ int64_t At(int64_t, int64_t column) const {
    return column;
  }
};
struct ChannelGains {
  int64_t groups, channels, inner;
  __device__ __forceinline__ int64_t At(int64_t row, int64_t column) const {
    return row % groups * channels + Quotient(column, inner);
  }
};

template <int kPack, typename Gains, typename T>
__global__ void __launch_bounds__(kGroupThreads)
    NormaliseKernel(T* y, Statistics<T> statistics, const T* x, Gains gains,
                    const Compute<T>* gamma, const Compute<T>* beta,
                    Compute<T> eps, int64_t rows, int64_t width, int group) {
  using C = Compute<T>;
  const int64_t packs = width / kPack;
  ForRows(rows, group, [&](int64_t row, bool live, int member) {
    const T* from = x + row * width;
    C values[kPack];
    C sum = 0;
#pragma unroll 2
    for (int64_t p = member; live && p < packs; p += group) {
      LoadAs(from, p, values);
#pragma unroll
      for (int j = 0; j < kPack; ++j) sum += values[j];
    }
    const C mean = CombineGroup(sum, group, Plus{}) / static_cast<C>(width);
    C squares = 0;
#pragma unroll 2
    for (int64_t p = member; live && p < packs; p += group) {
      LoadAs(from, p, values);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        squares += (values[j] - mean) * (values[j] - mean);
      }
    }
    squares = CombineGroup(squares, group, Plus{});
    if (!live) return;
    const C scale = InverseRoot(squares / static_cast<C>(width) + eps);
#pragma unroll 2
    for (int64_t p = member; p < packs; p += group) {
      LoadAs(from, p, values);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const int64_t at = gains.At(row, p * kPack + j);
        values[j] = (values[j] - mean) * scale * gamma[at] + beta[at];
      }
      StoreAs(y + row * width, p, values);
    }
    if (member == 0) {
      statistics.mean[row] = mean;
      statistics.scale[row] = scale;
    }
  });
}

// The two sums over a row that its gradient needs.
template <typename C>
struct RowSums {
  C plain;  // of g = dy * gamma
  C along;  // of g * normal
};
struct AddRowSums {
  template <typename C>
  __device__ __forceinline__ RowSums<C> operator()(const RowSums<C>& a,
                                                   const RowSums<C>& b) const {
    return {a.plain + b.plain, a.along + b.along};
  }
};

template <int kPack, typename Gains, typename T>
__global__ void __launch_bounds__(kGroupThreads)
    NormaliseBackwardKernel(T* dx, const T* dy, const T* x, Gains gains,
                            const Compute<T>* gamma, const Compute<T>* means,
                            const Compute<T>* scales, int64_t rows,
                            int64_t width, int group) {
  using C = Compute<T>;
  const int64_t packs = width / kPack;
  ForRows(rows, group, [&](int64_t row, bool live, int member) {
    const T* from = x + row * width;
    const T* given = dy + row * width;
    const C mean = live ? means[row] : C(0), scale = live ? scales[row] : C(0);
    C values[kPack], grads[kPack];
    RowSums<C> sums = {C(0), C(0)};
#pragma unroll 2
    for (int64_t p = member; live && p < packs; p += group) {
      LoadAs(from, p, values);
      LoadAs(given, p, grads);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const C g = grads[j] * gamma[gains.At(row, p * kPack + j)];
        sums.plain += g;
        sums.along += g * (values[j] - mean) * scale;
      }
    }
    sums = CombineGroup(sums, group, AddRowSums{});
    if (!live) return;
    const C plain = sums.plain / static_cast<C>(width);
    const C along = sums.along / static_cast<C>(width);
#pragma unroll 2
    for (int64_t p = member; p < packs; p += group) {
      LoadAs(from, p, values);
      LoadAs(given, p, grads);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const C g = grads[j] * gamma[gains.At(row, p * kPack + j)];
        const C normal = (values[j] - mean) * scale;
        grads[j] = scale * (g - plain - normal * along);
      }
      StoreAs(dx + row * width, p, grads);
    }
  });
}

// Block (i, j) sums rows [j * share, (j + 1) * share) of 32 packs of columns
// into row j of the parts [gridDim.y, width]. Its warps take rows in turn.
template <int kPack, typename T>
__global__ void __launch_bounds__(kGroupThreads)
    ParametersKernel(Compute<T>* dgamma_parts, Compute<T>* dbeta_parts,
                     const T* dy, const T* x, const Compute<T>* means,
                     const Compute<T>* scales, int64_t rows, int64_t width,
                     int64_t share) {
  using C = Compute<T>;
  __shared__ C sums[2][kWarps][kPack][kLanes];
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int64_t pack = int64_t{blockIdx.x} * kLanes + lane;
  const bool live = pack < width / kPack;
  C dgamma[kPack] = {}, dbeta[kPack] = {};
  const int64_t begin = int64_t{blockIdx.y} * share;
  const int64_t end = begin + share < rows ? begin + share : rows;
  for (int64_t row = begin + warp; live && row < end; row += kWarps) {
    C values[kPack], grads[kPack];
    LoadAs(x + row * width, pack, values);
    LoadAs(dy + row * width, pack, grads);
    const C mean = means[row], scale = scales[row];
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      dgamma[j] += grads[j] * ((values[j] - mean) * scale);
      dbeta[j] += grads[j];
    }
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    sums[0][warp][j][lane] = dgamma[j];
    sums[1][warp][j][lane] = dbeta[j];
  }
  __syncthreads();
  if (warp != 0 || !live) return;
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    for (int other = 1; other < kWarps; ++other) {
      dgamma[j] += sums[0][other][j][lane];
      dbeta[j] += sums[1][other][j][lane];
    }
    const int64_t at = int64_t{blockIdx.y} * width + pack * kPack + j;
    dgamma_parts[at] = dgamma[j];
    dbeta_parts[at] = dbeta[j];
  }
}

// Each block sums one channel of all images.
template <typename T>
__global__ void __launch_bounds__(kGroupThreads)
    ChannelParametersKernel(Compute<T>* dgamma, Compute<T>* dbeta, const T* dy,
                            const T* x, const Compute<T>* means,
                            const Compute<T>* scales, ChannelGains shape,
                            int64_t images) {
  using C = Compute<T>;
  const int64_t channel = blockIdx.x, all = gridDim.x;
  const int64_t group = channel / shape.channels;
  RowSums<C> sums = {C(0), C(0)};
#pragma unroll 2
  for (int64_t i = threadIdx.x; i < images * shape.inner; i += kGroupThreads) {
    const int64_t image = Quotient(i, shape.inner);
    const int64_t at =
        (image * all + channel) * shape.inner + (i - image * shape.inner);
    const int64_t row = image * shape.groups + group;
    const C d = As<C>(dy[at]);
    sums.plain += d;
    sums.along += d * ((As<C>(x[at]) - means[row]) * scales[row]);
  }
  sums = CombineGroup(sums, kGroupThreads, AddRowSums{});
  if (threadIdx.x != 0) return;
  dgamma[channel] = sums.along;
  dbeta[channel] = sums.plain;
}

template <typename T>
const Compute<T>* ComputeData(const Tensor& x) {
  return static_cast<const Compute<T>*>(x.raw_data());
}

ChannelGains GainsOf(const Tensor& x, const Tensor& gamma, int64_t groups) {
  const int64_t channels = gamma.numel() / groups;
  return {groups, channels, x.dim(1) / channels};
}

template <typename Fn>
void WithGains(const Tensor& x, const Tensor& gamma, int64_t groups, Fn fn) {
  const ChannelGains gains = GainsOf(x, gamma, groups);
  if (groups == 1 && gains.inner == 1) {
    fn(ElementGains{});
  } else {
    fn(gains);
  }
}

void ChannelParameters(const Tensor& dgamma, const Tensor& dbeta,
                       const Tensor& dy, const Tensor& x, const Tensor& mean,
                       const Tensor& inverse_stddev, int64_t groups) {
  const Launch launch(kNormOp, {&dgamma, &dbeta},
                      {&dy, &x, &mean, &inverse_stddev});
  VisitDeviceFloating(kNormOp, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ChannelParametersKernel<<<static_cast<unsigned>(dgamma.numel()),
                              kGroupThreads, 0, launch.stream()>>>(
        static_cast<Compute<T>*>(dgamma.raw_data()),
        static_cast<Compute<T>*>(dbeta.raw_data()),
        static_cast<const T*>(dy.raw_data()),
        static_cast<const T*>(x.raw_data()), ComputeData<T>(mean),
        ComputeData<T>(inverse_stddev), GainsOf(x, dgamma, groups),
        x.dim(0) / groups);
    launch.Check();
  });
}

}  // namespace

void LayerNorm(const Tensor& y, const Tensor& mean,
               const Tensor& inverse_stddev, const Tensor& x,
               const Tensor& gamma, const Tensor& beta, double eps,
               int64_t groups) {
  if (x.numel() == 0) return;
  const Launch launch(kNormOp, {&y, &mean, &inverse_stddev},
                      {&x, &gamma, &beta});
  const int64_t rows = x.dim(0), width = x.dim(1);
  VisitPacks(kNormOp, {&y, &x}, [&](auto type, auto pack) {
    using T = typename decltype(type)::type;
    constexpr int kPack = decltype(pack)::value;
    const Statistics<T> statistics = {
        static_cast<Compute<T>*>(mean.raw_data()),
        static_cast<Compute<T>*>(inverse_stddev.raw_data())};
    const int group = GroupSize(launch, rows, width / kPack);
    WithGains(x, gamma, groups, [&](auto gains) {
      NormaliseKernel<kPack><<<GroupBlocks(launch, rows, group), kGroupThreads,
                               0, launch.stream()>>>(
          static_cast<T*>(y.raw_data()), statistics,
          static_cast<const T*>(x.raw_data()), gains, ComputeData<T>(gamma),
          ComputeData<T>(beta), static_cast<Compute<T>>(eps), rows, width,
          group);
      launch.Check();
    });
  });
}

void LayerNormBackward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                       const Tensor& gamma, const Tensor& mean,
                       const Tensor& inverse_stddev, int64_t groups) {
  if (x.numel() == 0) return;
  const Launch launch(kNormOp, {&dx},
                      {&dy, &x, &gamma, &mean, &inverse_stddev});
  const int64_t rows = x.dim(0), width = x.dim(1);
  VisitPacks(kNormOp, {&dx, &dy, &x}, [&](auto type, auto pack) {
    using T = typename decltype(type)::type;
    constexpr int kPack = decltype(pack)::value;
    const int group = GroupSize(launch, rows, width / kPack);
    WithGains(x, gamma, groups, [&](auto gains) {
      NormaliseBackwardKernel<kPack><<<GroupBlocks(launch, rows, group),
                                       kGroupThreads, 0, launch.stream()>>>(
          static_cast<T*>(dx.raw_data()), static_cast<const T*>(dy.raw_data()),
          static_cast<const T*>(x.raw_data()), gains, ComputeData<T>(gamma),
          ComputeData<T>(mean), ComputeData<T>(inverse_stddev), rows, width,
          group);
      launch.Check();
    });
  });
}

void LayerNormParameters(const Tensor& dgamma, const Tensor& dbeta,
                         const Tensor& dy, const Tensor& x, const Tensor& mean,
                         const Tensor& inverse_stddev, int64_t groups) {
  const int64_t rows = x.dim(0), width = x.dim(1);
  if (rows == 0) {
    dgamma.Fill(0);
    dbeta.Fill(0);
    return;
  }
  if (groups > 1 || dgamma.numel() != width) {
    return ChannelParameters(dgamma, dbeta, dy, x, mean, inverse_stddev,
                             groups);
  }
  const int64_t share =
      std::max<int64_t>((rows + kMostParts - 1) / kMostParts, 4 * kWarps);
  const int64_t parts = (rows + share - 1) / share;
  const TensorOptions options = {.dtype = dgamma.dtype(),
                                 .device = dgamma.device()};
  const Tensor dgamma_parts = Tensor::Empty({parts, width}, options);
  const Tensor dbeta_parts = Tensor::Empty({parts, width}, options);
  {
    const Launch launch(kNormOp, {&dgamma_parts, &dbeta_parts},
                        {&dy, &x, &mean, &inverse_stddev});
    VisitPacks(kNormOp, {&dy, &x}, [&](auto type, auto pack) {
      using T = typename decltype(type)::type;
      constexpr int kPack = decltype(pack)::value;
      const int64_t columns = (width / kPack + kLanes - 1) / kLanes;
      const dim3 blocks(static_cast<unsigned>(columns),
                        static_cast<unsigned>(parts));
      ParametersKernel<kPack><<<blocks, kGroupThreads, 0, launch.stream()>>>(
          static_cast<Compute<T>*>(dgamma_parts.raw_data()),
          static_cast<Compute<T>*>(dbeta_parts.raw_data()),
          static_cast<const T*>(dy.raw_data()),
          static_cast<const T*>(x.raw_data()), ComputeData<T>(mean),
          ComputeData<T>(inverse_stddev), rows, width, share);
      launch.Check();
    });
  }
  SumAxes(dgamma.Reshape({1, width}), dgamma_parts, {true, false}, 1);
  SumAxes(dbeta.Reshape({1, width}), dbeta_parts, {true, false}, 1);
}

}  // namespace baton::cuda
