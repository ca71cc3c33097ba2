// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cfloat>

#include "core/cuda/offsets.cuh"
#include "core/cuda/reduce.h"
#include "core/cuda/rows.cuh"
#include "core/cuda/softmax.h"

// A group of threads takes a row and reads it twice: once for what all its
// elements need, then, from the cache, to write.
namespace baton::cuda {
namespace {

constexpr char kOp[] = "softmax";
constexpr int kThreads = kGroupThreads;

__device__ __forceinline__ float Exp(float x) { return expf(x); }
__device__ __forceinline__ double Exp(double x) { return exp(x); }
__device__ __forceinline__ float Log(float x) { return logf(x); }
__device__ __forceinline__ double Log(double x) { return log(x); }
template <typename C>
__device__ __forceinline__ C NotANumber() {
  return static_cast<C>(nanf(""));
}

// The sum of exp(x - max) over elements seen so far. NaN in any element makes
// the sum NaN.
template <typename C>
struct Exponentials {
  C max;
  C sum;
};

// max begins at a finite value, for which exp(-inf - max) is 0.
template <typename C>
__device__ __forceinline__ Exponentials<C> NothingSeen() {
  return {std::is_same_v<C, double> ? C(-DBL_MAX) : C(-FLT_MAX), C(0)};
}

struct Merge {
  template <typename C>
  __device__ __forceinline__ Exponentials<C> operator()(
      const Exponentials<C>& a, const Exponentials<C>& b) const {
    Exponentials<C> result;
    result.max = a.max < b.max ? b.max : a.max;
    result.sum =
        a.sum * Exp(a.max - result.max) + b.sum * Exp(b.max - result.max);
    return result;
  }
};

template <int kPack, typename C>
__device__ __forceinline__ void Include(Exponentials<C>& seen,
                                        const C (&values)[kPack]) {
  C max = values[0];
#pragma unroll
  for (int j = 1; j < kPack; ++j) max = max < values[j] ? values[j] : max;
  if (!(max <= seen.max)) {
    seen.sum *= Exp(seen.max - max);
    seen.max = max;
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) seen.sum += Exp(values[j] - seen.max);
}

// What cross entropy wants from log-softmax beside it; null pointers otherwise.
template <typename C>
struct RowLosses {
  const int64_t* labels = nullptr;
  C* losses = nullptr;
};

template <bool kLog, int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    ForwardKernel(T* y, const T* x, int64_t rows, int64_t width, int group,
                  RowLosses<Compute<T>> wanted) {
  using C = Compute<T>;
  const int64_t packs = width / kPack;
  ForRows(rows, group, [&](int64_t row, bool live, int member) {
    const T* from = x + row * width;
    T* to = y + row * width;
    Exponentials<C> seen = NothingSeen<C>();
    C values[kPack];
#pragma unroll 2
    for (int64_t p = member; live && p < packs; p += group) {
      LoadAs(from, p, values);
      Include(seen, values);
    }
    seen = CombineGroup(seen, group, Merge{});
    if (!live) return;
    const C scale = C(1) / seen.sum;
    const C log_sum = kLog ? Log(seen.sum) : C(0);
#pragma unroll 2
    for (int64_t p = member; p < packs; p += group) {
      LoadAs(from, p, values);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const C shifted = values[j] - seen.max;
        values[j] = kLog ? shifted - log_sum : Exp(shifted) * scale;
      }
      StoreAs(to, p, values);
    }
    if (kLog && wanted.losses != nullptr && member == 0) {
      const int64_t label = wanted.labels[row];
      const bool valid = label >= 0 && label < width;
      wanted.losses[row] =
          valid ? log_sum - (As<C>(from[label]) - seen.max) : NotANumber<C>();
    }
  });
}

template <bool kLog, int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    BackwardKernel(T* dx, const T* dy, const T* y, int64_t rows, int64_t width,
                   int group) {
  using C = Compute<T>;
  const int64_t packs = width / kPack;
  ForRows(rows, group, [&](int64_t row, bool live, int member) {
    const T* from = dy + row * width;
    const T* saved = y + row * width;
    C sum = 0;
    C grads[kPack], values[kPack];
#pragma unroll 2
    for (int64_t p = member; live && p < packs; p += group) {
      LoadAs(from, p, grads);
      if (!kLog) LoadAs(saved, p, values);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        sum += kLog ? grads[j] : grads[j] * values[j];
      }
    }
    sum = CombineGroup(sum, group, [](C a, C b) { return a + b; });
    if (!live) return;
#pragma unroll 2
    for (int64_t p = member; p < packs; p += group) {
      LoadAs(from, p, grads);
      LoadAs(saved, p, values);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        grads[j] = kLog ? grads[j] - Exp(values[j]) * sum
                        : (grads[j] - sum) * values[j];
      }
      StoreAs(dx + row * width, p, grads);
    }
  });
}

template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    CrossEntropyBackwardKernel(T* dx, const T* log_softmax,
                               const int64_t* labels, const T* dy, int64_t rows,
                               int64_t width) {
  using C = Compute<T>;
  const C scale = As<C>(*dy) / static_cast<C>(rows);
  const int64_t packs = rows * (width / kPack);
  for (int64_t p = int64_t{blockIdx.x} * kThreads + threadIdx.x; p < packs;
       p += int64_t{gridDim.x} * kThreads) {
    const int64_t row = Quotient(p * kPack, width);
    const int64_t column = p * kPack - row * width;
    const int64_t label = labels[row];
    const bool valid = label >= 0 && label < width;
    C values[kPack];
    LoadAs(log_softmax, p, values);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const C hit = column + j == label ? C(1) : C(0);
      values[j] = valid ? scale * (Exp(values[j]) - hit) : NotANumber<C>();
    }
    StoreAs(dx, p, values);
  }
}

template <bool kLog>
void RunForward(const Launch& launch, const Tensor& y, const Tensor& x,
                const Tensor& labels, const Tensor& losses) {
  const int64_t width = x.dim(-1);
  const int64_t rows = x.numel() / width;
  VisitPacks(kOp, {&y, &x}, [&](auto type, auto pack) {
    using T = typename decltype(type)::type;
    constexpr int kPack = decltype(pack)::value;
    RowLosses<Compute<T>> wanted;
    if (losses.defined()) {
      wanted = {static_cast<const int64_t*>(labels.raw_data()),
                static_cast<Compute<T>*>(losses.raw_data())};
    }
    const int group = GroupSize(launch, rows, width / kPack);
    ForwardKernel<kLog, kPack>
        <<<GroupBlocks(launch, rows, group), kThreads, 0, launch.stream()>>>(
            static_cast<T*>(y.raw_data()), static_cast<const T*>(x.raw_data()),
            rows, width, group, wanted);
    launch.Check();
  });
}

template <bool kLog>
void RunBackward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  if (y.numel() == 0) return;
  const Launch launch(kOp, {&dx}, {&dy, &y});
  const int64_t width = y.dim(-1);
  const int64_t rows = y.numel() / width;
  VisitPacks(kOp, {&dx, &dy, &y}, [&](auto type, auto pack) {
    using T = typename decltype(type)::type;
    constexpr int kPack = decltype(pack)::value;
    const int group = GroupSize(launch, rows, width / kPack);
    BackwardKernel<kLog, kPack>
        <<<GroupBlocks(launch, rows, group), kThreads, 0, launch.stream()>>>(
            static_cast<T*>(dx.raw_data()),
            static_cast<const T*>(dy.raw_data()),
            static_cast<const T*>(y.raw_data()), rows, width, group);
    launch.Check();
  });
}

}  // namespace

void Softmax(const Tensor& y, const Tensor& x) {
  if (x.numel() == 0) return;
  RunForward<false>(Launch(kOp, {&y}, {&x}), y, x, Tensor(), Tensor());
}
void LogSoftmax(const Tensor& y, const Tensor& x) {
  if (x.numel() == 0) return;
  RunForward<true>(Launch(kOp, {&y}, {&x}), y, x, Tensor(), Tensor());
}
void SoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  RunBackward<false>(dx, dy, y);
}
void LogSoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  RunBackward<true>(dx, dy, y);
}

void CrossEntropy(const Tensor& loss, const Tensor& log_softmax,
                  const Tensor& logits, const Tensor& labels) {
  const int64_t rows = labels.numel();
  const DType sums = logits.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const Tensor losses =
      Tensor::Empty({rows}, {.dtype = sums, .device = logits.device()});
  if (logits.numel() > 0) {
    const Launch launch("cross_entropy", {&log_softmax, &losses},
                        {&logits, &labels});
    RunForward<true>(launch, log_softmax, logits, labels, losses);
  } else {
    losses.Fill(std::nan(""));  // no label is in range of no classes
  }
  SumParts(loss, losses, 1 / static_cast<double>(rows));
}

void CrossEntropyBackward(const Tensor& dx, const Tensor& log_softmax,
                          const Tensor& labels, const Tensor& dy) {
  if (dx.numel() == 0) return;
  const Launch launch("cross_entropy_backward", {&dx},
                      {&log_softmax, &labels, &dy});
  VisitPacks(kOp, {&dx, &log_softmax}, [&](auto type, auto pack) {
    using T = typename decltype(type)::type;
    constexpr int kPack = decltype(pack)::value;
    const int blocks = launch.Blocks(dx.numel(), kThreads, kPack);
    CrossEntropyBackwardKernel<kPack><<<blocks, kThreads, 0, launch.stream()>>>(
        static_cast<T*>(dx.raw_data()),
        static_cast<const T*>(log_softmax.raw_data()),
        static_cast<const int64_t*>(labels.raw_data()),
        static_cast<const T*>(dy.raw_data()), dx.dim(0), dx.dim(1));
    launch.Check();
  });
}

}  // namespace baton::cuda
