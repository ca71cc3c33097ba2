// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/optimizer.cuh"
#include "core/cuda/optimizer.h"

namespace baton::cuda {
namespace {

struct SgdEntry {
  void* value;
  void* momentum;  // null: none
  int64_t* count;  // likewise
  int64_t numel;
  StepEnds ends;
  bool first_step;
};

// Coefficients in the type of the values.
template <typename T>
struct SgdRule {
  explicit SgdRule(const ops::SgdOptions& options)
      : lr(static_cast<T>(options.lr)),
        momentum(static_cast<T>(options.momentum)),
        undamped(static_cast<T>(1 - options.dampening)),
        weight_decay(static_cast<T>(options.weight_decay)),
        sign(options.maximize ? T(-1) : T(1)),
        nesterov(options.nesterov) {}

  T lr, momentum, undamped, weight_decay, sign;
  bool nesterov;
};

template <typename T, typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    SgdKernel(const __grid_constant__ Entries batch, SgdRule<T> rule,
              const double* rate, const float* skip) {
  if (skip != nullptr && *skip != 0) return;
  constexpr int kRun = kStepRun<T>;
  const Chunk chunk = ChunkOfBlock(batch);
  const SgdEntry& entry = batch.entries[chunk.entry];
  const bool aligned = entry.ends.aligned;
  const T lr = rate == nullptr ? rule.lr : static_cast<T>(*rate);
  const T mu = entry.first_step ? T(0) : rule.momentum;
  const T damped = entry.first_step ? T(1) : rule.undamped;
  if (chunk.begin == 0 && threadIdx.x == 0 && entry.count != nullptr) {
    ++*entry.count;
  }
  for (int64_t i = chunk.begin + threadIdx.x * kRun; i < chunk.end;
       i += kBatchThreads * kRun) {
    const int64_t left = chunk.end - i;
    T value[kRun], grad[kRun], m[kRun];
    LoadValue<T>(entry.value, entry.ends, i, left, value);
    LoadGrad(entry.ends, i, left, grad);
    if (entry.momentum != nullptr) {
      LoadAs<T>(entry.momentum, i, left, aligned, m);
    }
#pragma unroll
    for (int j = 0; j < kRun; ++j) {
      T step = rule.sign * grad[j] + rule.weight_decay * value[j];
      if (entry.momentum != nullptr) {
        m[j] = mu * m[j] + damped * step;
        step = rule.nesterov ? step + rule.momentum * m[j] : m[j];
      }
      value[j] -= lr * step;
    }
    StoreAs<T>(entry.value, i, left, aligned, value);
    if (entry.momentum != nullptr) {
      StoreAs<T>(entry.momentum, i, left, aligned, m);
    }
    StoreLowered(entry.ends, i, left, value);
  }
}

template <typename T>
SgdEntry EntryOf(const ops::SgdTarget& t, bool has_momentum) {
  const Tensor momentum = has_momentum ? t.momentum : Tensor();
  return {.value = t.value.raw_data(),
          .momentum = DataOf(momentum),
          .count = static_cast<int64_t*>(DataOf(t.count)),
          .numel = t.value.numel(),
          .ends = EndsOf<T>(t.grad, t.lowered,
                            {&t.value, &t.grad, &t.lowered, &momentum}),
          .first_step = t.first_step};
}

template <typename T>
void Step(const Launch& launch, const std::vector<ops::SgdTarget>& targets,
          const ops::SgdOptions& options) {
  std::vector<SgdEntry> entries;
  for (const ops::SgdTarget& target : targets) {
    if (target.value.dtype() == kDTypeOf<T>)
      entries.push_back(EntryOf<T>(target, options.momentum != 0));
  }
  const auto* rate = static_cast<const double*>(DataOf(targets.front().rate));
  const auto* skip = static_cast<const float*>(DataOf(targets.front().skip));
  ForEachBatch(entries, [&](const auto& batch, uint32_t blocks, size_t) {
    SgdKernel<T><<<blocks, kBatchThreads, 0, launch.stream()>>>(
        batch, SgdRule<T>(options), rate, skip);
    launch.Check();
  });
}

}  // namespace

void SgdStep(const std::vector<ops::SgdTarget>& targets,
             const ops::SgdOptions& options) {
  StepOperands operands;
  for (const ops::SgdTarget& t : targets) {
    operands.read.push_back(&t.grad);
    operands.read.push_back(&t.rate);
    operands.read.push_back(&t.skip);
    for (const Tensor* x : {&t.value, &t.lowered, &t.count})
      operands.written.push_back(x);
    if (options.momentum != 0) operands.written.push_back(&t.momentum);
  }
  const Launch launch("sgd", operands.written, operands.read);
  Step<float>(launch, targets, options);
  Step<double>(launch, targets, options);
}

}  // namespace baton::cuda
