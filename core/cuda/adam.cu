// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/optimizer.cuh"
#include "core/cuda/optimizer.h"

namespace baton::cuda {
namespace {

struct AdamEntry {
  void* value;
  void* mean;
  void* variance;
  void* max_variance;  // null: none
  int64_t numel;
  StepEnds ends;
};

// A parameter's count of steps, or the number of this one.
struct CountEntry {
  int64_t* count;  // null: `step` is this one's number
  int64_t step;
  int64_t numel;
};

// What depends on the number of the step: one for each parameter, written on
// the GPU because that is where a recorded step counts.
struct StepFactors {
  double keep;  // of the value: decoupled weight decay
  double step_size;
  double variance_scale;  // sqrt of the variance's bias correction
};

template <typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    CountKernel(const __grid_constant__ Entries batch, ops::AdamOptions options,
                const double* rate, const float* skip, StepFactors* factors) {
  if (skip != nullptr && *skip != 0) return;
  const double lr = rate == nullptr ? options.lr : *rate;
  for (int i = static_cast<int>(threadIdx.x); i < batch.count;
       i += kBatchThreads) {
    const CountEntry& entry = batch.entries[i];
    const int64_t step = entry.count == nullptr ? entry.step : ++*entry.count;
    const double number = static_cast<double>(step);
    const double decay = options.decoupled_decay ? options.weight_decay : 0;
    factors[i] = {1 - lr * decay, lr / (1 - pow(options.beta1, number)),
                  sqrt(1 - pow(options.beta2, number))};
  }
}

// The other coefficients in the type of the values.
template <typename T>
struct AdamRule {
  explicit AdamRule(const ops::AdamOptions& o)
      : beta1(static_cast<T>(o.beta1)),
        beta2(static_cast<T>(o.beta2)),
        rest1(static_cast<T>(1 - o.beta1)),
        rest2(static_cast<T>(1 - o.beta2)),
        eps(static_cast<T>(o.eps)),
        weight_decay(static_cast<T>(o.decoupled_decay ? 0 : o.weight_decay)),
        sign(o.maximize ? T(-1) : T(1)) {}

  T beta1, beta2, rest1, rest2, eps, weight_decay, sign;
};

template <typename T, typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    AdamKernel(const __grid_constant__ Entries batch, AdamRule<T> rule,
               const float* skip, const StepFactors* factors) {
  if (skip != nullptr && *skip != 0) return;
  constexpr int kRun = kStepRun<T>;
  const Chunk chunk = ChunkOfBlock(batch);
  const AdamEntry& entry = batch.entries[chunk.entry];
  const StepFactors factor = factors[chunk.entry];
  const bool aligned = entry.ends.aligned;
  const bool amsgrad = entry.max_variance != nullptr;
  const T keep = static_cast<T>(factor.keep);
  const T step_size = static_cast<T>(factor.step_size);
  const T scale = static_cast<T>(factor.variance_scale);
  for (int64_t i = chunk.begin + threadIdx.x * kRun; i < chunk.end;
       i += kBatchThreads * kRun) {
    const int64_t left = chunk.end - i;
    T value[kRun], grad[kRun], mean[kRun], variance[kRun], greatest[kRun];
    LoadValue<T>(entry.value, entry.ends, i, left, value);
    LoadGrad(entry.ends, i, left, grad);
    LoadAs<T>(entry.mean, i, left, aligned, mean);
    LoadAs<T>(entry.variance, i, left, aligned, variance);
    if (amsgrad) LoadAs<T>(entry.max_variance, i, left, aligned, greatest);
#pragma unroll
    for (int j = 0; j < kRun; ++j) {
      const T kept = keep * value[j];
      const T g = rule.sign * grad[j] + rule.weight_decay * kept;
      mean[j] = rule.beta1 * mean[j] + rule.rest1 * g;
      variance[j] = rule.beta2 * variance[j] + rule.rest2 * g * g;
      T v = variance[j];
      if (amsgrad) {
        v = greatest[j] < v ? v : greatest[j];
        greatest[j] = v;
      }
      value[j] = kept - step_size * (mean[j] / (sqrt(v) / scale + rule.eps));
    }
    StoreAs<T>(entry.value, i, left, aligned, value);
    StoreAs<T>(entry.mean, i, left, aligned, mean);
    StoreAs<T>(entry.variance, i, left, aligned, variance);
    if (amsgrad) StoreAs<T>(entry.max_variance, i, left, aligned, greatest);
    StoreLowered(entry.ends, i, left, value);
  }
}

template <typename T>
AdamEntry EntryOf(const ops::AdamTarget& t, bool amsgrad) {
  const Tensor max_variance = amsgrad ? t.max_variance : Tensor();
  return {.value = t.value.raw_data(),
          .mean = t.mean.raw_data(),
          .variance = t.variance.raw_data(),
          .max_variance = DataOf(max_variance),
          .numel = t.value.numel(),
          .ends = EndsOf<T>(t.grad, t.lowered,
                            {&t.value, &t.grad, &t.lowered, &t.mean,
                             &t.variance, &max_variance})};
}

template <typename T>
void Step(const Launch& launch, const std::vector<ops::AdamTarget>& targets,
          const ops::AdamOptions& options, const Tensor& factors) {
  std::vector<AdamEntry> entries;
  std::vector<CountEntry> counts;
  for (const ops::AdamTarget& target : targets) {
    if (target.value.dtype() != kDTypeOf<T>) continue;
    entries.push_back(EntryOf<T>(target, options.amsgrad));
    counts.push_back({static_cast<int64_t*>(DataOf(target.count)), target.step,
                      target.value.numel()});
  }
  const auto* rate = static_cast<const double*>(DataOf(targets.front().rate));
  const auto* skip = static_cast<const float*>(DataOf(targets.front().skip));
  auto* const to = static_cast<StepFactors*>(factors.raw_data());
  ForEachBatch(counts, [&](const auto& batch, uint32_t, size_t first) {
    CountKernel<<<1, kBatchThreads, 0, launch.stream()>>>(batch, options, rate,
                                                          skip, to + first);
    launch.Check();
  });
  ForEachBatch(entries, [&](const auto& batch, uint32_t blocks, size_t first) {
    AdamKernel<T><<<blocks, kBatchThreads, 0, launch.stream()>>>(
        batch, AdamRule<T>(options), skip, to + first);
    launch.Check();
  });
}

}  // namespace

void AdamStep(const std::vector<ops::AdamTarget>& targets,
              const ops::AdamOptions& options) {
  const auto parameters = static_cast<int64_t>(targets.size());
  const Tensor factors = Tensor::Empty(
      {parameters, 3},
      {.dtype = DType::kF64, .device = targets.front().value.device()});
  StepOperands operands{.written = {&factors}, .read = {}};
  for (const ops::AdamTarget& t : targets) {
    operands.read.push_back(&t.grad);
    operands.read.push_back(&t.rate);
    operands.read.push_back(&t.skip);
    for (const Tensor* x :
         {&t.value, &t.mean, &t.variance, &t.lowered, &t.count})
      operands.written.push_back(x);
    if (options.amsgrad) operands.written.push_back(&t.max_variance);
  }
  const Launch launch("adam", operands.written, operands.read);
  Step<float>(launch, targets, options, factors);
  Step<double>(launch, targets, options, factors);
}

}  // namespace baton::cuda
