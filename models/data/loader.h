// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "models/data/dataset.h"
#include "models/data/transforms.h"

namespace baton::data {

struct LoaderOptions {
  int64_t batch = 32;
  bool shuffle = false;
  uint64_t seed = 0;         // of the order and of random transforms
  bool drop_last = false;    // leaves out a last batch that is smaller
  int workers = 2;           // threads; 0: Next does the work itself
  int prefetch = 4;          // batches made ahead at most, all workers together
  Transform transform = {};  // empty: as the data set gives it, as f32
  // How long Next waits, which a worker exceeds only when its disk hangs.
  std::chrono::milliseconds deadline{120'000};
};

struct Batch {
  Tensor images;  // f32 [N, C, H, W], channels-last
  Tensor labels;  // i64 [N]
  int64_t size() const { return labels.dim(0); }
};

// Batches of a data set, made by threads ahead of their use. Order and random
// transforms depend on seed and epoch alone, not on the number of workers.
//
//   ASSIGN_OR_RETURN(auto loader, Loader::Make(images, {.shuffle = true}));
//   for (int64_t epoch = 0; epoch < 10; ++epoch) {
//     loader->StartEpoch(epoch);
//     for (;;) {
//       ASSIGN_OR_RETURN(std::optional<Batch> batch, loader->Next());
//       if (!batch) break;
//       ...
//
// Thread-compatible.
class Loader {
 public:
  // InvalidArgument for options that make no sense or an empty data set.
  static absl::StatusOr<std::unique_ptr<Loader>> Make(
      std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t batches() const { return batches_; }  // an epoch
  int64_t samples() const;                      // an epoch
  const Dataset& dataset() const { return *dataset_; }

  // Drops what is left of the epoch before. A new loader is at epoch 0.
  void StartEpoch(int64_t epoch) { StartAt(epoch, 0); }
  // The next batch of the epoch; nullopt behind the last one. Errors name the
  // sample; a batch that failed is passed over by the Next after it.
  absl::StatusOr<std::optional<Batch>> Next();

  // Where it is: the epoch, and how many of its batches Next has passed.
  int64_t epoch() const { return number_; }
  int64_t batch() const { return next_; }
  // "position", and "order", which says what the order of the samples is of.
  std::map<std::string, Tensor> ExportState() const;
  // Goes on where the other one was; batches before that are not made.
  // InvalidArgument, with nothing changed, for the state of a loader that has
  // another order.
  absl::Status ImportState(const std::map<std::string, Tensor>& state);

 private:
  using Result = absl::StatusOr<Batch>;
  struct Epoch {
    int64_t number = 0;
    std::vector<int64_t> order;  // of the samples
  };
  Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  void StartAt(int64_t epoch, int64_t batch);
  std::vector<int64_t> Order() const;
  std::shared_ptr<const Epoch> MakeEpoch(int64_t number) const;
  Result MakeBatch(const Epoch& epoch, int64_t batch) const;
  absl::StatusOr<Sample> MakeSample(const Epoch& epoch, int64_t index) const;
  void Work();
  bool HasWorkLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::optional<Batch>> Await(int64_t batch);

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  const int64_t batches_;
  // The user's thread alone: the epoch, and the batch that Next gives.
  int64_t number_ = 0;
  int64_t next_ = 0;

  Mutex mutex_;
  CondVar work_;  // for workers: something to do
  CondVar made_;  // for Next: a batch is there
  std::shared_ptr<const Epoch> epoch_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // batches handed to workers
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // batches Next has returned
  std::map<int64_t, Result> ready_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace baton::data
