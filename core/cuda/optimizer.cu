// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <variant>

#include "core/cuda/optimizer.cuh"
#include "core/cuda/optimizer.h"

namespace baton::cuda {
namespace {

// A parameter's count of steps, or the number of this step.
struct CountEntry {
  int64_t* count;  // null: `step` is the number
  int64_t step;
  int64_t numel;
};

template <int kSlots>
struct StepEntry {
  void* value;
  void* state[kSlots];  // null: none
  int64_t numel;
  StepEnds ends;
};

// Computes the factors of each parameter's step on the GPU, because a recorded
// step counts there.
template <typename Rule, typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    CountKernel(const __grid_constant__ Entries batch, Rule rule,
                const double* rate, const float* skip,
                typename Rule::Factors* factors) {
  if (skip != nullptr && *skip != 0) return;
  const double lr = rate == nullptr ? rule.lr : *rate;
  for (int i = static_cast<int>(threadIdx.x); i < batch.count;
       i += kBatchThreads) {
    const CountEntry& entry = batch.entries[i];
    const int64_t step = entry.count == nullptr ? entry.step : ++*entry.count;
    factors[i] = rule.FactorsOf(lr, step);
  }
}

// Steps up to kStepRun elements, which begin at `at`, by the gradient's at
// `grad_at`. `used` has a bit for each slot with a state.
template <typename Rule, typename T>
__device__ __forceinline__ void StepRun(
    const StepEntry<Rule::kSlots>& entry,
    const typename Rule::template Element<T>& step,
    const ops::GradientClip<T>& clipped, unsigned used, int64_t at,
    int64_t grad_at, int64_t left) {
  constexpr int kRun = kStepRun<T>;
  constexpr int kSlots = Rule::kSlots;
  const bool aligned = entry.ends.aligned;
  T value[kRun], grad[kRun], states[kSlots][kRun] = {};
  LoadValue<T>(entry.value, entry.ends, at, left, value);
  LoadGrad(entry.ends, grad_at, left, grad);
#pragma unroll
  for (int s = 0; s < kSlots; ++s) {
    if ((used >> s & 1U) != 0)
      LoadAs<T>(entry.state[s], at, left, aligned, states[s]);
  }
#pragma unroll
  for (int j = 0; j < kRun; ++j) {
    T state[kSlots];
#pragma unroll
    for (int s = 0; s < kSlots; ++s) state[s] = states[s][j];
    step(value[j], clipped(grad[j]), state, used);
#pragma unroll
    for (int s = 0; s < kSlots; ++s) states[s][j] = state[s];
  }
  StoreAs<T>(entry.value, at, left, aligned, value);
#pragma unroll
  for (int s = 0; s < kSlots; ++s) {
    if ((used >> s & 1U) != 0)
      StoreAs<T>(entry.state[s], at, left, aligned, states[s]);
  }
  StoreLowered(entry.ends, at, left, value);
}

template <typename T>
__device__ __forceinline__ ops::GradientClip<T> ClipOf(double limit,
                                                       const double* scale) {
  return {static_cast<T>(limit),
          scale == nullptr ? T(1) : static_cast<T>(*scale)};
}

template <typename Rule, typename T, typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    StepKernel(const __grid_constant__ Entries batch, Rule rule, unsigned used,
               double limit, const double* scale, const float* skip,
               const typename Rule::Factors* factors) {
  if (skip != nullptr && *skip != 0) return;
  constexpr int kRun = kStepRun<T>;
  const Chunk chunk = ChunkOfBlock(batch);
  const auto& entry = batch.entries[chunk.entry];
  const typename Rule::template Element<T> step(rule, factors[chunk.entry]);
  const ops::GradientClip<T> clipped = ClipOf<T>(limit, scale);
  for (int64_t i = chunk.begin + threadIdx.x * kRun; i < chunk.end;
       i += kBatchThreads * kRun)
    StepRun<Rule, T>(entry, step, clipped, used, i, i, chunk.end - i);
}

// Rows of a parameter [table_rows, width]. Rows with an index out of range are
// ignored.
template <int kSlots>
struct RowsEntry {
  StepEntry<kSlots> step;
  const int64_t* rows;
  int64_t count, width, table_rows;
};

template <typename Rule, typename T>
__global__ void __launch_bounds__(kBatchThreads)
    RowsKernel(const __grid_constant__ RowsEntry<Rule::kSlots> entry, Rule rule,
               unsigned used, double limit, const double* scale,
               const float* skip, const typename Rule::Factors* factors) {
  if (skip != nullptr && *skip != 0) return;
  constexpr int kRun = kStepRun<T>;
  const typename Rule::template Element<T> step(rule, *factors);
  const ops::GradientClip<T> clipped = ClipOf<T>(limit, scale);
  const int64_t runs = (entry.width + kRun - 1) / kRun;  // in a row
  for (int64_t i = int64_t{blockIdx.x} * kBatchThreads + threadIdx.x;
       i < entry.count * runs; i += int64_t{gridDim.x} * kBatchThreads) {
    const int64_t row = i / runs;
    const int64_t column = (i - row * runs) * kRun;
    const int64_t to = entry.rows[row];
    if (to < 0 || to >= entry.table_rows) continue;
    StepRun<Rule, T>(entry.step, step, clipped, used, to * entry.width + column,
                     row * entry.width + column, entry.width - column);
  }
}

template <typename T, int kSlots>
StepEntry<kSlots> EntryOf(const ops::StepTarget& target) {
  StepEntry<kSlots> entry{};
  std::vector<const Tensor*> all = {&target.value, &target.grad,
                                    &target.lowered};
  for (int s = 0; s < kSlots; ++s) {
    const Tensor& state = target.state[static_cast<size_t>(s)];
    entry.state[s] = DataOf(state);
    all.push_back(&state);
  }
  entry.value = target.value.raw_data();
  entry.numel = target.value.numel();
  entry.ends = EndsOf<T>(target.grad, target.lowered, all);
  return entry;
}

template <typename T, int kSlots>
RowsEntry<kSlots> RowsEntryOf(const ops::StepTarget& target) {
  RowsEntry<kSlots> entry{EntryOf<T, kSlots>(target),
                          static_cast<const int64_t*>(DataOf(target.rows)),
                          target.rows.numel(), target.value.dim(1),
                          target.value.dim(0)};
  entry.step.ends.aligned &= entry.width % kStepRun<T> == 0;
  return entry;
}

unsigned UsedSlots(const std::vector<Tensor>& state) {
  unsigned used = 0;
  for (size_t i = 0; i < state.size(); ++i)
    used |= state[i].defined() ? 1U << i : 0U;
  return used;
}

template <typename T, typename Rule>
void StepAll(const Launch& launch, const std::vector<ops::StepTarget>& targets,
             const Rule& rule, double limit, const Tensor& factors) {
  std::vector<StepEntry<Rule::kSlots>> entries;
  std::vector<RowsEntry<Rule::kSlots>> of_rows;
  std::vector<CountEntry> counts;  // first those of entries, then those of rows
  for (const bool rows : {false, true}) {
    for (const ops::StepTarget& target : targets) {
      if (target.value.dtype() != kDTypeOf<T> || target.rows.defined() != rows)
        continue;
      counts.push_back({static_cast<int64_t*>(DataOf(target.count)),
                        target.step, target.value.numel()});
      if (rows) {
        of_rows.push_back(RowsEntryOf<T, Rule::kSlots>(target));
      } else {
        entries.push_back(EntryOf<T, Rule::kSlots>(target));
      }
    }
  }
  const unsigned used = UsedSlots(targets.front().state);
  const auto* rate = static_cast<const double*>(DataOf(targets.front().rate));
  const auto* scale = static_cast<const double*>(DataOf(targets.front().scale));
  const auto* skip = static_cast<const float*>(DataOf(targets.front().skip));
  auto* const to = static_cast<typename Rule::Factors*>(factors.raw_data());
  ForEachBatch(counts, [&](const auto& batch, uint32_t, size_t first) {
    CountKernel<<<1, kBatchThreads, 0, launch.stream()>>>(batch, rule, rate,
                                                          skip, to + first);
    launch.Check();
  });
  ForEachBatch(entries, [&](const auto& batch, uint32_t blocks, size_t first) {
    StepKernel<Rule, T><<<blocks, kBatchThreads, 0, launch.stream()>>>(
        batch, rule, used, limit, scale, skip, to + first);
    launch.Check();
  });
  for (size_t i = 0; i < of_rows.size(); ++i) {
    const auto& entry = of_rows[i];
    const int64_t runs = (entry.width + kStepRun<T> - 1) / kStepRun<T>;
    if (entry.count * runs == 0) continue;
    RowsKernel<Rule, T><<<launch.Blocks(entry.count * runs, kBatchThreads),
                          kBatchThreads, 0, launch.stream()>>>(
        entry, rule, used, limit, scale, skip, to + entries.size() + i);
    launch.Check();
  }
}

template <typename Rule>
void StepBy(const Rule& rule, const std::vector<ops::StepTarget>& targets,
            double limit) {
  constexpr auto kNumbers =
      static_cast<int64_t>(sizeof(typename Rule::Factors) / sizeof(double));
  const auto parameters = static_cast<int64_t>(targets.size());
  const Tensor factors = Tensor::Empty(
      {parameters, kNumbers},
      {.dtype = DType::kF64, .device = targets.front().value.device()});
  std::vector<const Tensor*> written = {&factors}, read;
  for (const ops::StepTarget& target : targets) {
    for (const Tensor* x : {&target.grad, &target.rows, &target.rate,
                            &target.scale, &target.skip})
      read.push_back(x);
    for (const Tensor* x : {&target.value, &target.lowered, &target.count})
      written.push_back(x);
    for (const Tensor& x : target.state) written.push_back(&x);
  }
  const Launch launch("optimizer", written, read);
  StepAll<float>(launch, targets, rule, limit, factors);
  StepAll<double>(launch, targets, rule, limit, factors);
}

}  // namespace

void OptimizerStep(const ops::StepGroup& group, double limit) {
  std::visit([&](const auto& rule) { StepBy(rule, group.targets, limit); },
             group.rule);
}

}  // namespace baton::cuda
