// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "core/cuda/batch.cuh"
#include "core/cuda/batch_norm.h"
#include "core/cuda/launch.h"

namespace baton::cuda {
namespace {

constexpr size_t kAtOnce = 8;  // batches in one launch

struct RunningEntry {
  float *mean, *variance;
  int64_t* count;  // null: none
  int64_t numel;   // channels
  const float* batches[kAtOnce];
  int taken;  // number of them in this launch
  double momentum;
};

// One thread processes one channel, batch after batch, and rounds as one update
// for each batch would.
template <typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    RunningKernel(const __grid_constant__ Entries list) {
  const Chunk chunk = ChunkOfBlock(list);
  const RunningEntry& entry = list.entries[chunk.entry];
  for (int64_t c = chunk.begin + threadIdx.x; c < chunk.end;
       c += kBatchThreads) {
    float mean = entry.mean[c], variance = entry.variance[c];
    for (int b = 0; b < entry.taken; ++b) {
      const float* batch = entry.batches[b];
      const double of_mean = batch[c], of_variance = batch[entry.numel + c];
      mean = static_cast<float>(mean + entry.momentum * (of_mean - mean));
      variance = static_cast<float>(variance +
                                    entry.momentum * (of_variance - variance));
    }
    entry.mean[c] = mean;
    entry.variance[c] = variance;
  }
  if (chunk.begin == 0 && threadIdx.x == 0 && entry.count != nullptr)
    *entry.count += entry.taken;
}

}  // namespace

void UpdateRunningStatistics(const std::vector<ops::RunningUpdate>& updates) {
  std::vector<const Tensor*> written, read;
  size_t most = 0;
  for (const ops::RunningUpdate& update : updates) {
    for (const Tensor* x : {&update.mean, &update.variance, &update.count})
      written.push_back(x);
    for (const Tensor& batch : update.batches) read.push_back(&batch);
    most = std::max(most, update.batches.size());
  }
  const Launch launch("batch_norm", written, read);
  for (size_t first = 0; first < most; first += kAtOnce) {
    std::vector<RunningEntry> entries;
    for (const ops::RunningUpdate& update : updates) {
      if (update.batches.size() <= first) continue;
      RunningEntry entry = {
          .mean = static_cast<float*>(update.mean.raw_data()),
          .variance = static_cast<float*>(update.variance.raw_data()),
          .count = update.count.defined()
                       ? static_cast<int64_t*>(update.count.raw_data())
                       : nullptr,
          .numel = update.mean.numel(),
          .batches = {},
          .taken = static_cast<int>(
              std::min(kAtOnce, update.batches.size() - first)),
          .momentum = update.momentum};
      for (size_t b = 0; b < static_cast<size_t>(entry.taken); ++b) {
        entry.batches[b] =
            static_cast<const float*>(update.batches[first + b].raw_data());
      }
      entries.push_back(entry);
    }
    ForEachBatch(entries, [&](const auto& list, uint32_t blocks, size_t) {
      RunningKernel<<<blocks, kBatchThreads, 0, launch.stream()>>>(list);
      launch.Check();
    });
  }
}

}  // namespace baton::cuda
