// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/device_types.cuh"
#include "core/cuda/group_reduce.cuh"
#include "core/cuda/offsets.cuh"
#include "core/cuda/reduce.h"

// A sum is a loop over what is kept (the outputs) around a loop over what is
// summed (units: packs of elements). If outputs are adjacent in memory, threads
// compute adjacent outputs (columns); otherwise a group of threads shares an
// output (rows). Few outputs are summed in two stages: the splits of every
// output give partial sums [splits, outputs], which are then summed.
namespace baton::cuda {
namespace {

constexpr char kOp[] = "sum";
constexpr int kThreads = kGroupThreads;
constexpr int kInFlight = 4;      // loads before the first use
constexpr int kBlocksWanted = 4;  // for each multiprocessor

template <typename T>
inline constexpr int kPackOf = std::min(kPackSize<T>, 8);

struct Plus {
  template <typename S>
  __device__ __forceinline__ S operator()(S a, S b) const {
    if constexpr (std::is_integral_v<S>) {
      return static_cast<S>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};

template <typename In, typename Out>
struct Task {
  const In* x;
  Out* out;            // split s of output k: out + kept.At(k)[1] + s * outputs
  Offsets<2> kept;     // of x and out
  Offsets<1> reduced;  // of x, in units
  int64_t outputs;
  int64_t length;  // units for each output
  int64_t splits;
  int64_t per_split;
  double factor;

  __device__ __forceinline__ Out Result(Sum<In> sum) const {
    if constexpr (std::is_integral_v<Out>) {
      return static_cast<Out>(sum);
    } else {
      return As<Out>(static_cast<double>(sum) * factor);
    }
  }
};

template <int kPack, typename T>
__device__ __forceinline__ Pack<T, kPack> Load(const T* x) {
  return *reinterpret_cast<const Pack<T, kPack>*>(x);
}

// Adds units begin, begin + step, ... of one output to sums, which has one for
// each element of a pack.
template <int kPack, typename In, typename Out>
__device__ __forceinline__ void AddUnits(const Task<In, Out>& task, const In* x,
                                         int64_t begin, int64_t end,
                                         int64_t step, Sum<In> (&sums)[kPack]) {
  int64_t at[1];
  int64_t unit = begin;
  for (; unit + (kInFlight - 1) * step < end; unit += kInFlight * step) {
    Pack<In, kPack> packs[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      task.reduced.At(unit + i * step, at);
      packs[i] = Load<kPack>(x + at[0]);
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        sums[j] = Plus{}(sums[j], As<Sum<In>>(packs[i].at[j]));
      }
    }
  }
  for (; unit < end; unit += step) {
    task.reduced.At(unit, at);
    const Pack<In, kPack> pack = Load<kPack>(x + at[0]);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      sums[j] = Plus{}(sums[j], As<Sum<In>>(pack.at[j]));
    }
  }
}

// Each group of threads does one job (split, output), outputs innermost.
template <int kPack, typename In, typename Out>
__global__ void __launch_bounds__(kThreads)
    SumRowsKernel(const __grid_constant__ Task<In, Out> task, int group) {
  const int groups = kThreads / group;
  const int member = static_cast<int>(threadIdx.x) % group;
  const int64_t jobs = task.outputs * task.splits;
  for (int64_t first = int64_t{blockIdx.x} * groups; first < jobs;
       first += int64_t{gridDim.x} * groups) {
    const int64_t job = first + threadIdx.x / group;
    int64_t split = 0;
    int64_t at[2] = {0, 0};
    Sum<In> sums[kPack] = {};
    if (job < jobs) {
      split = Quotient(job, task.outputs);
      task.kept.At(job - split * task.outputs, at);
      const int64_t begin = split * task.per_split;
      AddUnits<kPack>(task, task.x + at[0], begin + member,
                      min(begin + task.per_split, task.length), group, sums);
    }
#pragma unroll
    for (int j = 1; j < kPack; ++j) sums[0] = Plus{}(sums[0], sums[j]);
    const Sum<In> sum = CombineGroup(sums[0], group, Plus{});
    if (job < jobs && member == 0) {
      task.out[at[1] + split * task.outputs] = task.Result(sum);
    }
  }
}

// Each block does one job (split, line of columns, tile of `across` packs of
// columns). Its threads process `across` columns by kThreads / across units.
template <int kPack, typename In, typename Out>
__global__ void __launch_bounds__(kThreads)
    SumColumnsKernel(const __grid_constant__ Task<In, Out> task, int across,
                     int64_t columns) {
  __shared__ Sum<In> parts[kPack][kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int down = kThreads / across;
  const int64_t tiles = (columns + across - 1) / across;
  const int64_t strips = task.outputs / (columns * kPack) * tiles;
  for (int64_t job = blockIdx.x; job < strips * task.splits; job += gridDim.x) {
    const int64_t split = Quotient(job, strips);
    const int64_t strip = job - split * strips;
    const int64_t line = Quotient(strip, tiles);
    const int64_t column = (strip - line * tiles) * across + thread % across;
    int64_t at[2] = {0, 0};
    Sum<In> sums[kPack] = {};
    if (column < columns) {
      task.kept.At((line * columns + column) * kPack, at);
      const int64_t begin = split * task.per_split;
      AddUnits<kPack>(task, task.x + at[0], begin + thread / across,
                      min(begin + task.per_split, task.length), down, sums);
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) parts[j][thread] = sums[j];
    for (int half = down / 2; half > 0; half /= 2) {
      __syncthreads();
      if (thread < half * across) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          parts[j][thread] =
              Plus{}(parts[j][thread], parts[j][thread + half * across]);
        }
      }
    }
    if (thread < across && column < columns) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        task.out[at[1] + j * task.kept.strides[1][0] + split * task.outputs] =
            task.Result(parts[j][thread]);
      }
    }
    __syncthreads();
  }
}

// The loops over what is kept (operands x and out) and over what is summed (x).
struct Loops {
  StridedLoop<2> kept;
  StridedLoop<1> reduced;

  bool by_columns() const {
    return kept.inner_stride(0) == 1 && kept.inner_size() >= 4 &&
           (reduced.inner_stride(0) != 1 || reduced.numel == 1);
  }
  // Returns whether packs of elements tile the lines along which threads walk.
  template <typename In>
  bool FitPacks(const In* x) const {
    constexpr int64_t kPack = kPackOf<In>;
    const bool columns = by_columns();
    const Dims& sizes = columns ? kept.sizes : reduced.sizes;
    const Dims& strides = columns ? kept.strides[0] : reduced.strides[0];
    return strides.back() == 1 && sizes.back() % kPack == 0 &&
           IsAligned(x, kPack * sizeof(In)) &&
           StepsFit(kept.sizes, kept.strides[0], kPack, columns) &&
           StepsFit(reduced.sizes, reduced.strides[0], kPack, !columns);
  }

 private:
  // Returns whether the strides of all dims keep packs aligned; the innermost
  // dim does not count if it is `packed`.
  static bool StepsFit(const Dims& sizes, const Dims& strides, int64_t pack,
                       bool packed) {
    const size_t outer = packed ? sizes.size() - 1 : sizes.size();
    bool fit = true;
    for (size_t d = 0; d < outer; ++d) {
      fit = fit && (sizes[d] == 1 || strides[d] % pack == 0);
    }
    return fit;
  }
};

// Numbers the partial sums of the outputs densely in the loop's own order.
StridedLoop<2> DenseOutputs(StridedLoop<2> kept, size_t operand) {
  int64_t stride = 1;
  for (size_t d = kept.sizes.size(); d-- > 0;) {
    kept.strides[operand][d] = stride;
    stride *= kept.sizes[d];
  }
  return kept;
}

int64_t SplitsFor(const Launch& launch, int64_t blocks, int64_t length,
                  int64_t step) {
  const int64_t wanted = int64_t{kBlocksWanted} * launch.multiprocessors() /
                         std::max<int64_t>(blocks, 1);
  return std::clamp<int64_t>(
      wanted, 1, std::max<int64_t>(length / (2 * kInFlight * step), 1));
}

// The form of one launch, for either kernel.
struct Plan {
  bool columns = false;
  bool packs = false;
  int width = 1;     // threads of a group, or across
  int64_t jobs = 0;  // without splits
  int64_t splits = 1;
};

template <typename In>
Plan PlanFor(const Launch& launch, const Loops& loops, const In* x,
             int64_t length) {
  Plan plan{.columns = loops.by_columns(), .packs = loops.FitPacks(x)};
  const int pack = plan.packs ? kPackOf<In> : 1;
  const int64_t outputs = loops.kept.numel;
  if (plan.columns) {
    const int64_t columns = loops.kept.inner_size() / pack;
    plan.width = static_cast<int>(
        std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(columns, 32))));
    const int64_t tiles = (columns + plan.width - 1) / plan.width;
    plan.jobs = outputs / loops.kept.inner_size() * tiles;
    plan.splits = SplitsFor(launch, plan.jobs, length, kThreads / plan.width);
  } else {
    plan.width = GroupSize(launch, outputs, length / pack);
    plan.jobs = outputs;
    const int groups = kThreads / plan.width;
    plan.splits = SplitsFor(launch, (outputs + groups - 1) / groups,
                            length / pack, plan.width);
  }
  return plan;
}

template <int kPack, typename In, typename Out>
void LaunchSum(const Launch& launch, const Plan& plan, Loops loops, const In* x,
               Out* out, double factor) {
  const int64_t columns = loops.kept.inner_size() / kPack;
  if (!plan.columns) {
    loops.reduced.numel /= kPack;
    loops.reduced.sizes.back() /= kPack;
    loops.reduced.strides[0].back() *= kPack;
  }
  Task<In, Out> task{.x = x,
                     .out = out,
                     .kept = {kOp, loops.kept},
                     .reduced = {kOp, loops.reduced},
                     .outputs = loops.kept.numel,
                     .length = loops.reduced.numel,
                     .splits = plan.splits,
                     .per_split = 0,
                     .factor = factor};
  task.per_split = (task.length + task.splits - 1) / task.splits;
  if (plan.columns) {
    const int blocks = launch.Blocks(plan.jobs * plan.splits, 1);
    SumColumnsKernel<kPack>
        <<<blocks, kThreads, 0, launch.stream()>>>(task, plan.width, columns);
  } else {
    const int blocks = GroupBlocks(launch, plan.jobs * plan.splits, plan.width);
    SumRowsKernel<kPack>
        <<<blocks, kThreads, 0, launch.stream()>>>(task, plan.width);
  }
  launch.Check();
}

template <typename In, typename Out>
void LaunchPlan(const Launch& launch, const Plan& plan, const Loops& loops,
                const In* x, Out* out, double factor) {
  if (plan.packs) {
    LaunchSum<kPackOf<In>>(launch, plan, loops, x, out, factor);
  } else {
    LaunchSum<1>(launch, plan, loops, x, out, factor);
  }
}

template <typename In, typename Out>
void SumOnce(const Launch& launch, const Loops& loops, const In* x, Out* out,
             double factor) {
  Plan plan = PlanFor(launch, loops, x, loops.reduced.numel);
  plan.splits = 1;
  LaunchPlan(launch, plan, loops, x, out, factor);
}

template <typename In, typename Out>
void SumAll(const Launch& launch, const Loops& loops, const In* x, Out* out,
            double factor) {
  const Plan plan = PlanFor(launch, loops, x, loops.reduced.numel);
  if (plan.splits == 1) return SumOnce(launch, loops, x, out, factor);
  using S = Sum<In>;
  const int64_t outputs = loops.kept.numel;
  const Tensor partial = Tensor::Empty(
      {plan.splits, outputs},
      {.dtype = kDTypeOf<S>, .device = Device::Cuda(launch.device())});
  const Launch stages(kOp, {&partial}, {});
  S* parts = static_cast<S*>(partial.raw_data());
  LaunchPlan(stages, plan, {DenseOutputs(loops.kept, 1), loops.reduced}, x,
             parts, 1);
  const Dims stride = {outputs};
  SumOnce(stages,
          {DenseOutputs(loops.kept, 0),
           StridedLoop<1>(Shape({plan.splits}), {&stride})},
          static_cast<const S*>(parts), out, factor);
}

struct Axes {
  Dims sizes, x_strides, out_strides;
};

}  // namespace

void SumAxes(const Tensor& out, const Tensor& x,
             const std::vector<bool>& reduced, double factor) {
  if (out.numel() == 0) return;
  const Launch launch(kOp, {&out}, {&x});
  Axes kept_axes;
  Axes reduced_axes;
  for (size_t d = 0; d < reduced.size(); ++d) {
    Axes& axes = reduced[d] ? reduced_axes : kept_axes;
    axes.sizes.push_back(x.shape().dims()[d]);
    axes.x_strides.push_back(x.strides()[d]);
    axes.out_strides.push_back(out.strides()[d]);
  }
  const Loops loops{
      {Shape(kept_axes.sizes), {&kept_axes.x_strides, &kept_axes.out_strides}},
      {Shape(reduced_axes.sizes), {&reduced_axes.x_strides}}};
  VisitDeviceType(x.dtype(), [&](auto type) {
    using In = typename decltype(type)::type;
    using Out = std::conditional_t<std::is_integral_v<In>, int64_t, In>;
    SumAll(launch, loops, static_cast<const In*>(x.raw_data()),
           static_cast<Out*>(out.raw_data()), factor);
  });
}

void SumParts(const Tensor& total, const Tensor& parts, double factor) {
  const Launch launch(kOp, {&total}, {&parts});
  const Dims none;
  const Loops loops{{Shape(), {&none, &none}},
                    {parts.shape(), {&parts.strides()}}};
  VisitDeviceFloating(kOp, total.dtype(), [&](auto type) {
    using Out = typename decltype(type)::type;
    using In = Sum<Out>;
    SumAll(launch, loops, static_cast<const In*>(parts.raw_data()),
           static_cast<Out*>(total.raw_data()), factor);
  });
}

}  // namespace baton::cuda
