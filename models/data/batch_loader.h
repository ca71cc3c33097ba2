// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device.h"
#include "core/mutex.h"
#include "models/data/collate.h"
#include "models/data/sampler.h"

namespace baton::data {

struct BatchLoaderOptions {
  int workers = 2;   // threads; 0: Next does the work itself
  int prefetch = 4;  // the most batches made ahead, by all workers
  // The device of the batches. They are copied to a GPU from pinned memory, on
  // the stream for copies, one batch ahead of the one that Next returns.
  Device device = Device::Cpu();
  // Puts batches on the CPU into pinned memory; needs CUDA.
  bool pinned = false;
  // How long Next waits for a batch. A worker takes longer only if its disk
  // hangs.
  std::chrono::milliseconds deadline{120'000};
};

// Makes the batch of these samples in that epoch. Called on the workers'
// threads.
using MakeBatch = std::function<absl::StatusOr<Tensors>(
    int64_t epoch, const std::vector<int64_t>& samples)>;
// Returns a MakeBatch that gets samples one by one and collates them.
MakeBatch FromSamples(
    std::function<absl::StatusOr<Tensors>(int64_t sample)> get,
    Collate collate = Stacked());

// Makes batches on threads, ahead of their use, in the order of a sampler.
//
//   ASSIGN_OR_RETURN(auto loader, BatchLoader::Make(
//       std::make_shared<FixedBatches>(
//           std::make_shared<DistributedSampler>(
//               size, DistributedSamplerOptions{.ranks = 4, .rank = rank}),
//               32),
//       FromSamples([&](int64_t i) -> absl::StatusOr<Tensors> {
//         return Tensors{sequences[i], labels[i]};
//       }, Padded()), {.device = Device::Cuda(0)}));
//   for (int64_t epoch = 0; epoch < 10; ++epoch) {
//     loader->StartEpoch(epoch);
//     for (;;) {
//       ASSIGN_OR_RETURN(const auto batch, loader->Next());
//       if (!batch) break;
//       ...
//
// Thread-compatible.
class BatchLoader {
 public:
  // InvalidArgument if the options are invalid.
  static absl::StatusOr<std::unique_ptr<BatchLoader>> Make(
      std::shared_ptr<const BatchSampler> sampler, MakeBatch make,
      const BatchLoaderOptions& options = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  int64_t batches() const { return sampler_->batches(); }  // in an epoch

  // Begins this epoch, dropping the rest of the previous one. A new loader is
  // at epoch 0.
  void StartEpoch(int64_t epoch) { StartAt(epoch, 0); }
  // Returns the next batch of the epoch; nullopt after the last one. After a
  // batch that failed, the next call goes on with the batch behind it.
  absl::StatusOr<std::optional<Tensors>> Next();

  // Returns the position: the epoch, and how many of its batches Next has
  // passed.
  int64_t epoch() const { return number_; }
  int64_t batch() const { return next_; }
  // Returns the position and the sampler's identity, as "position" and "order".
  std::map<std::string, Tensor> ExportState() const;
  // Continues at the exported position: Next returns exactly the rest of that
  // epoch, in order; earlier batches are not made. Returns InvalidArgument,
  // with nothing changed, if the state is of a loader with another order.
  absl::Status ImportState(const std::map<std::string, Tensor>& state);

 private:
  using Result = absl::StatusOr<Tensors>;
  struct Epoch {
    int64_t number = 0;
    std::vector<std::vector<int64_t>> batches;  // the samples of each
  };
  // A batch that was made, and the state of its copy to the device.
  struct Made {
    Result result;
    enum { kHost, kLeaving, kThere } place;
  };
  BatchLoader(std::shared_ptr<const BatchSampler> sampler, MakeBatch make,
              const BatchLoaderOptions& options);
  void StartAt(int64_t epoch, int64_t batch);
  std::shared_ptr<const Epoch> MakeEpoch(int64_t number) const;
  Result MadeFor(const Epoch& epoch, int64_t batch) const;
  Tensors Pinned(Tensors tensors) const;
  Tensors Placed(const Tensors& tensors) const;
  void PlaceAhead();
  void Work();
  bool HasWorkLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result Await(int64_t batch);

  const std::shared_ptr<const BatchSampler> sampler_;
  const MakeBatch make_;
  const BatchLoaderOptions options_;
  // Confined to the user's thread: the epoch, and the batch that Next returns.
  int64_t number_ = 0;
  int64_t next_ = 0;

  Mutex mutex_;
  CondVar work_;  // wakes workers: there is work
  CondVar made_;  // wakes Next: a batch is ready
  std::shared_ptr<const Epoch> epoch_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // batches handed to workers
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // batches Next has returned
  std::map<int64_t, Made> ready_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace baton::data
