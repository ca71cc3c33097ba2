// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/access.cuh"
#include "core/cuda/batch.cuh"
#include "core/cuda/launch.h"
#include "core/cuda/multi_tensor.h"

namespace baton::cuda {
namespace {

struct UnscaleEntry {
  float* target;
  const void* source;
  int64_t numel;
  bool aligned;
};

// All blocks that find such a value write the same 1, so their order does not
// matter.
template <typename S, typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    UnscaleKernel(const __grid_constant__ Entries batch, const float* scale,
                  float* not_finite) {
  constexpr int kRun = kPackSize<S>;
  const Chunk chunk = ChunkOfBlock(batch);
  const UnscaleEntry& entry = batch.entries[chunk.entry];
  const float factor = 1 / *scale;
  bool finite = true;
  for (int64_t i = chunk.begin + threadIdx.x * kRun; i < chunk.end;
       i += kBatchThreads * kRun) {
    float values[kRun];
    LoadAs<S>(entry.source, i, chunk.end - i, entry.aligned, values);
#pragma unroll
    for (int j = 0; j < kRun; ++j) {
      finite = finite && isfinite(values[j]);
      values[j] *= factor;
    }
    StoreAs<float>(entry.target, i, chunk.end - i, entry.aligned, values);
  }
  if (!finite && not_finite != nullptr) *not_finite = 1;
}

template <typename T>
void Unscale(const Launch& launch, const std::vector<TensorPair>& pairs,
             const Tensor& scale, const Tensor& not_finite) {
  std::vector<UnscaleEntry> entries;
  for (const auto& [target, source] : pairs) {
    if (source.dtype() != kDTypeOf<T>) continue;
    entries.push_back(
        {static_cast<float*>(target.raw_data()), source.raw_data(),
         target.numel(),
         IsAligned(target.raw_data()) && IsAligned(source.raw_data())});
  }
  auto* const flag = not_finite.defined()
                         ? static_cast<float*>(not_finite.raw_data())
                         : nullptr;
  ForEachBatch(entries, [&](const auto& batch, uint32_t blocks, size_t) {
    UnscaleKernel<DeviceType<T>><<<blocks, kBatchThreads, 0, launch.stream()>>>(
        batch, static_cast<const float*>(scale.raw_data()), flag);
    launch.Check();
  });
}

}  // namespace

void UnscalePairs(const std::vector<TensorPair>& pairs, const Tensor& scale,
                  const Tensor& not_finite) {
  std::vector<const Tensor*> written = {&not_finite}, read = {&scale};
  for (const TensorPair& pair : pairs) {
    written.push_back(&pair.target);
    read.push_back(&pair.source);
  }
  const Launch launch("unscale_many", written, read);
  Unscale<float>(launch, pairs, scale, not_finite);
  Unscale<Half>(launch, pairs, scale, not_finite);
  Unscale<BFloat16>(launch, pairs, scale, not_finite);
}

}  // namespace baton::cuda
