// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cfloat>

#include "core/cuda/offsets.cuh"
#include "core/cuda/reduce.h"
#include "core/cuda/rows.cuh"
#include "core/cuda/softmax.h"

// A group of threads processes a row and reads it twice: first for what all its
// elements need, then, from the cache, to write the result.
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

// The target that each of the labels [rows] stands for: `kept` times the weight
// of its own class, and `spread` times the weight of every class.
template <typename T>
struct ClassTargets {
  using C = Compute<T>;
  const int64_t* labels = nullptr;
  const T* weight = nullptr;      // null: ones
  const T* weight_sum = nullptr;  // null: the number of classes
  int64_t ignored = 0;
  int64_t classes = 0;
  C kept = 1, spread = 0;

  __device__ __forceinline__ C WeightOf(int64_t c) const {
    return weight == nullptr ? C(1) : As<C>(weight[c]);
  }
  __device__ __forceinline__ bool IsClass(int64_t label) const {
    return label >= 0 && label < classes;
  }
  __device__ __forceinline__ C SpreadSum() const {
    return spread * (weight_sum == nullptr ? static_cast<C>(classes)
                                           : As<C>(*weight_sum));
  }
};

// What cross entropy computes in addition to log-softmax: the losses of the
// rows and their weights in a mean. The pointers are null in other ops.
template <typename T>
struct RowLosses {
  ClassTargets<T> targets;
  Compute<T>* losses = nullptr;
  Compute<T>* shares = nullptr;
};

// Writes the loss of a row. All threads of the block must call it, `live` or
// not; `LogOf(c)` is the class's log-softmax.
template <typename T, typename LogOf>
__device__ __forceinline__ void StoreLoss(const RowLosses<T>& wanted,
                                          int64_t row, bool live, int member,
                                          int group, LogOf log_of) {
  using C = Compute<T>;
  const ClassTargets<T>& targets = wanted.targets;
  C smooth = 0;
  if (targets.spread != C(0)) {
    for (int64_t c = member; live && c < targets.classes; c += group) {
      smooth += targets.WeightOf(c) * log_of(c);
    }
    smooth = CombineGroup(smooth, group, [](C a, C b) { return a + b; });
  }
  if (!live || member != 0) return;
  const int64_t label = targets.labels[row];
  const bool ignored = label == targets.ignored;
  C loss = ignored ? C(0) : NotANumber<C>();
  C share = ignored ? C(0) : C(1);
  if (!ignored && targets.IsClass(label)) {
    share = targets.WeightOf(label);
    loss = -(targets.kept * share) * log_of(label);
    if (targets.spread != C(0)) loss -= targets.spread * smooth;
  }
  wanted.losses[row] = loss;
  wanted.shares[row] = share;
}

template <bool kLog, int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    ForwardKernel(T* y, const T* x, int64_t rows, int64_t width, int group,
                  RowLosses<T> wanted) {
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
    const C scale = C(1) / seen.sum;
    const C log_sum = kLog ? Log(seen.sum) : C(0);
#pragma unroll 2
    for (int64_t p = member; live && p < packs; p += group) {
      LoadAs(from, p, values);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const C shifted = values[j] - seen.max;
        values[j] = kLog ? shifted - log_sum : Exp(shifted) * scale;
      }
      StoreAs(to, p, values);
    }
    if (kLog && wanted.losses != nullptr) {
      StoreLoss(wanted, row, live, member, group, [&](int64_t c) {
        return (As<C>(from[c]) - seen.max) - log_sum;
      });
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

// Writes to row i of dx the gradient for the loss's gradient dy[i * dy_step] /
// *divisor.
template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    CrossEntropyBackwardKernel(T* dx, const T* log_softmax,
                               ClassTargets<T> targets, const T* dy,
                               int64_t dy_step, const Compute<T>* divisor,
                               int64_t rows) {
  using C = Compute<T>;
  const int64_t width = targets.classes;
  const C total = divisor == nullptr ? C(1) : *divisor;
  const C spread_sum = targets.spread == C(0) ? C(0) : targets.SpreadSum();
  const int64_t packs = rows * (width / kPack);
  for (int64_t p = int64_t{blockIdx.x} * kThreads + threadIdx.x; p < packs;
       p += int64_t{gridDim.x} * kThreads) {
    const int64_t row = Quotient(p * kPack, width);
    const int64_t column = p * kPack - row * width;
    const int64_t label = targets.labels[row];
    const bool ignored = label == targets.ignored;
    const bool valid = targets.IsClass(label);
    const C scale = As<C>(dy[row * dy_step]) / total;
    const C own = valid ? targets.kept * targets.WeightOf(label) : C(0);
    C values[kPack];
    LoadAs(log_softmax, p, values);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      C hit = column + j == label ? own : C(0);
      if (targets.spread != C(0)) {
        hit += targets.spread * targets.WeightOf(column + j);
      }
      values[j] = scale * ((own + spread_sum) * Exp(values[j]) - hit);
      if (!valid) values[j] = NotANumber<C>();
      if (ignored) values[j] = C(0);
    }
    StoreAs(dx, p, values);
  }
}

// `weight_sum` is defined if there are weights and label smoothing.
template <typename T>
ClassTargets<T> TargetsOf(const Tensor& labels, int64_t classes,
                          const ClassLossOptions& options,
                          const Tensor& weight_sum) {
  using C = Compute<T>;
  ClassTargets<T> targets;
  targets.labels = static_cast<const int64_t*>(labels.raw_data());
  if (options.weight.defined()) {
    targets.weight = static_cast<const T*>(options.weight.raw_data());
  }
  if (weight_sum.defined()) {
    targets.weight_sum = static_cast<const T*>(weight_sum.raw_data());
  }
  targets.ignored = options.ignore_index;
  targets.classes = classes;
  targets.kept = static_cast<C>(1 - options.label_smoothing);
  targets.spread =
      static_cast<C>(options.label_smoothing / static_cast<double>(classes));
  return targets;
}

Tensor SumOfSpreadWeights(const ClassLossOptions& options) {
  if (!options.weight.defined() || options.label_smoothing == 0) return {};
  const Tensor sum = Tensor::Empty({1}, {.dtype = options.weight.dtype(),
                                         .device = options.weight.device()});
  SumAxes(sum, options.weight, {true}, 1);
  return sum;
}

// `parts`, labels and options are those of CrossEntropy; without it, they are
// undefined.
template <bool kLog>
void RunForward(const Launch& launch, const Tensor& y, const Tensor& x,
                const Tensor& labels = {}, const Tensor& parts = {},
                const ClassLossOptions& options = {}) {
  const int64_t width = x.dim(-1);
  const int64_t rows = x.numel() / width;
  VisitPacks(kOp, {&y, &x}, [&](auto type, auto pack) {
    using T = typename decltype(type)::type;
    constexpr int kPack = decltype(pack)::value;
    RowLosses<T> wanted;
    if (parts.defined()) {
      wanted.targets = TargetsOf<T>(labels, width, options, Tensor());
      wanted.losses = static_cast<Compute<T>*>(parts.raw_data());
      wanted.shares = wanted.losses + rows;
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
  RunForward<false>(Launch(kOp, {&y}, {&x}), y, x);
}
void LogSoftmax(const Tensor& y, const Tensor& x) {
  if (x.numel() == 0) return;
  RunForward<true>(Launch(kOp, {&y}, {&x}), y, x);
}
void SoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  RunBackward<false>(dx, dy, y);
}
void LogSoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  RunBackward<true>(dx, dy, y);
}

void CrossEntropy(const Tensor& parts, const Tensor& log_softmax,
                  const Tensor& logits, const Tensor& labels,
                  const ClassLossOptions& options) {
  if (logits.numel() > 0) {
    const Launch launch("cross_entropy", {&log_softmax, &parts},
                        {&logits, &labels, &options.weight});
    RunForward<true>(launch, log_softmax, logits, labels, parts, options);
  } else {
    parts.Fill(std::nan(""));  // there are no classes, so no label is valid
  }
}

void CrossEntropyBackward(const Tensor& dx, const Tensor& log_softmax,
                          const Tensor& labels, const Tensor& dy,
                          const Tensor& divisor,
                          const ClassLossOptions& options) {
  if (dx.numel() == 0) return;
  const Tensor weight_sum = SumOfSpreadWeights(options);
  const Launch launch(
      "cross_entropy_backward", {&dx},
      {&log_softmax, &labels, &dy, &divisor, &options.weight, &weight_sum});
  VisitPacks(kOp, {&dx, &log_softmax}, [&](auto type, auto pack) {
    using T = typename decltype(type)::type;
    constexpr int kPack = decltype(pack)::value;
    const int blocks = launch.Blocks(dx.numel(), kThreads, kPack);
    CrossEntropyBackwardKernel<kPack><<<blocks, kThreads, 0, launch.stream()>>>(
        static_cast<T*>(dx.raw_data()),
        static_cast<const T*>(log_softmax.raw_data()),
        TargetsOf<T>(labels, dx.dim(1), options, weight_sum),
        static_cast<const T*>(dy.raw_data()), dy.numel() == 1 ? 0 : 1,
        divisor.defined() ? static_cast<const Compute<T>*>(divisor.raw_data())
                          : nullptr,
        dx.dim(0));
    launch.Check();
  });
}

}  // namespace baton::cuda
