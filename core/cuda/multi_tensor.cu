// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/access.cuh"
#include "core/cuda/arithmetic.cuh"
#include "core/cuda/batch.cuh"
#include "core/cuda/group_reduce.cuh"
#include "core/cuda/launch.h"
#include "core/cuda/multi_tensor.h"

namespace baton::cuda {
namespace {

struct PairEntry {
  void* target;
  const void* source;
  int64_t numel;
  bool aligned;
};

template <typename T, typename S>
inline constexpr int kPairRun =
    kPackSize<T> > kPackSize<S> ? kPackSize<T> : kPackSize<S>;

struct AddPair {
  template <typename T, typename S>
  static constexpr bool Takes() {
    return std::is_same_v<T, S> || (std::is_same_v<T, float> && kIsSmall<S>);
  }

  template <typename T, typename S, int kRun>
  __device__ static void Run(const PairEntry& entry, int64_t first,
                             int64_t left) {
    using C = Compute<T>;
    C sum[kRun], more[kRun];
    LoadAs<T>(entry.target, first, left, entry.aligned, sum);
    LoadAs<S>(entry.source, first, left, entry.aligned, more);
#pragma unroll
    for (int i = 0; i < kRun; ++i) sum[i] += more[i];
    StoreAs<T>(entry.target, first, left, entry.aligned, sum);
  }
};

struct CopyPair {
  template <typename T, typename S>
  static constexpr bool Takes() {
    return true;
  }

  template <typename T, typename S, int kRun>
  __device__ static void Run(const PairEntry& entry, int64_t first,
                             int64_t left) {
    S values[kRun];
    LoadSome(static_cast<const S*>(entry.source) + first, left, entry.aligned,
             values);
    StoreAs<T>(entry.target, first, left, entry.aligned, values);
  }
};

template <typename Op, typename T, typename S, typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    PairKernel(const __grid_constant__ Entries batch) {
  constexpr int kRun = kPairRun<T, S>;
  const Chunk chunk = ChunkOfBlock(batch);
  for (int64_t i = chunk.begin + threadIdx.x * kRun; i < chunk.end;
       i += kBatchThreads * kRun) {
    Op::template Run<T, S, kRun>(batch.entries[chunk.entry], i, chunk.end - i);
  }
}

template <typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    ZeroKernel(const __grid_constant__ Entries batch) {
  constexpr int kRun = 16;
  const Chunk chunk = ChunkOfBlock(batch);
  const PairEntry& entry = batch.entries[chunk.entry];
  const uint8_t zeros[kRun] = {};
  for (int64_t i = chunk.begin + threadIdx.x * kRun; i < chunk.end;
       i += kBatchThreads * kRun) {
    StoreSome(static_cast<uint8_t*>(entry.target) + i, chunk.end - i,
              entry.aligned, zeros);
  }
}

// Copies bytes.
template <typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    CopyIfKernel(const __grid_constant__ Entries batch,
                 const float* condition) {
  if (condition != nullptr && *condition == 0) return;
  constexpr int kRun = 16;
  const Chunk chunk = ChunkOfBlock(batch);
  const PairEntry& entry = batch.entries[chunk.entry];
  for (int64_t i = chunk.begin + threadIdx.x * kRun; i < chunk.end;
       i += kBatchThreads * kRun) {
    const auto* from = static_cast<const uint8_t*>(entry.source) + i;
    auto* to = static_cast<uint8_t*>(entry.target) + i;
    const int64_t left = chunk.end - i;
    if (entry.aligned && left >= kRun) {
      uint8_t bytes[kRun];
      LoadRun(from, bytes);
      StoreRun(to, bytes);
    } else {
      for (int64_t j = 0; j < kRun && j < left; ++j) to[j] = from[j];
    }
  }
}

// Computes one sum for each block.
template <typename S, typename Entries>
__global__ void __launch_bounds__(kBatchThreads)
    SquareKernel(const __grid_constant__ Entries batch, double* sums) {
  static_assert(kBatchThreads == kGroupThreads);
  constexpr int kRun = kPackSize<S>;
  const Chunk chunk = ChunkOfBlock(batch);
  const PairEntry& entry = batch.entries[chunk.entry];
  double sum = 0;
  for (int64_t i = chunk.begin + threadIdx.x * kRun; i < chunk.end;
       i += kBatchThreads * kRun) {
    Compute<S> values[kRun];  // 0 past the end
    LoadAs<S>(entry.source, i, chunk.end - i, entry.aligned, values);
#pragma unroll
    for (int j = 0; j < kRun; ++j) {
      const double value = values[j];
      sum += value * value;
    }
  }
  sum = CombineGroup(sum, kGroupThreads, AddOp());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Runs the op on pairs of two types, in few launches.
template <typename Op, typename T, typename S>
void RunPairs(const Launch& launch, const std::vector<TensorPair>& pairs,
              DType target, DType source) {
  std::vector<PairEntry> entries;
  for (const TensorPair& pair : pairs) {
    if (pair.target.dtype() != target || pair.source.dtype() != source)
      continue;
    void* const to = pair.target.raw_data();
    const void* const from = pair.source.raw_data();
    entries.push_back(
        {to, from, pair.target.numel(), IsAligned(to) && IsAligned(from)});
  }
  ForEachBatch(entries, [&](const auto& batch, uint32_t blocks, size_t) {
    PairKernel<Op, T, S><<<blocks, kBatchThreads, 0, launch.stream()>>>(batch);
    launch.Check();
  });
}

template <typename Op>
void RunAll(const char* op, const std::vector<TensorPair>& pairs) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kF16,
                              DType::kBF16};
  std::vector<const Tensor*> written, read;
  for (const TensorPair& pair : pairs) {
    written.push_back(&pair.target);
    read.push_back(&pair.source);
  }
  const Launch launch(op, written, read);
  for (DType target : kTypes) {
    for (DType source : kTypes) {
      VisitDeviceFloating(op, target, [&](auto t) {
        VisitDeviceFloating(op, source, [&](auto s) {
          using T = typename decltype(t)::type;
          using S = typename decltype(s)::type;
          if constexpr (Op::template Takes<T, S>()) {
            RunPairs<Op, T, S>(launch, pairs, target, source);
          }
        });
      });
    }
  }
}

}  // namespace

void AddPairs(const std::vector<TensorPair>& pairs) {
  RunAll<AddPair>("add_into_many", pairs);
}

void CopyPairs(const std::vector<TensorPair>& pairs) {
  RunAll<CopyPair>("cast_many", pairs);
}

void CopyPairsIf(const Tensor& condition,
                 const std::vector<TensorPair>& pairs) {
  std::vector<const Tensor*> written, read = {&condition};
  std::vector<PairEntry> entries;
  for (const TensorPair& pair : pairs) {
    written.push_back(&pair.target);
    read.push_back(&pair.source);
    void* const to = pair.target.raw_data();
    const void* const from = pair.source.raw_data();
    entries.push_back({to, from, static_cast<int64_t>(pair.target.nbytes()),
                       IsAligned(to) && IsAligned(from)});
  }
  const Launch launch("copy_many_if", written, read);
  const auto* given = condition.defined()
                          ? static_cast<const float*>(condition.raw_data())
                          : nullptr;
  ForEachBatch(entries, [&](const auto& batch, uint32_t blocks, size_t) {
    CopyIfKernel<<<blocks, kBatchThreads, 0, launch.stream()>>>(batch, given);
    launch.Check();
  });
}

Tensor SquareSums(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> read;
  int64_t parts = 0;
  for (const Tensor& tensor : tensors) {
    read.push_back(&tensor);
    parts += (tensor.numel() + kBatchChunk - 1) / kBatchChunk;
  }
  const Tensor sums = Tensor::Empty(
      {parts}, {.dtype = DType::kF64, .device = tensors.front().device()});
  const Launch launch("square_sum", {&sums}, read);
  auto* to = static_cast<double*>(sums.raw_data());
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    std::vector<PairEntry> entries;
    for (const Tensor& tensor : tensors) {
      if (tensor.dtype() == dtype)
        entries.push_back({nullptr, tensor.raw_data(), tensor.numel(),
                           IsAligned(tensor.raw_data())});
    }
    VisitDeviceFloating("square_sum", dtype, [&](auto s) {
      ForEachBatch(entries, [&](const auto& batch, uint32_t blocks, size_t) {
        SquareKernel<typename decltype(s)::type>
            <<<blocks, kBatchThreads, 0, launch.stream()>>>(batch, to);
        launch.Check();
        to += blocks;
      });
    });
  }
  return sums;
}

void ZeroTensors(const std::vector<Tensor>& targets) {
  std::vector<const Tensor*> written;
  std::vector<PairEntry> entries;
  for (const Tensor& target : targets) {
    written.push_back(&target);
    entries.push_back({target.raw_data(), nullptr,
                       static_cast<int64_t>(target.nbytes()),
                       IsAligned(target.raw_data())});
  }
  const Launch launch("zero_many", written, {});
  ForEachBatch(entries, [&](const auto& batch, uint32_t blocks, size_t) {
    ZeroKernel<<<blocks, kBatchThreads, 0, launch.stream()>>>(batch);
    launch.Check();
  });
}

}  // namespace baton::cuda
