// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/data/batch_loader.h"
#include "models/data/dataset.h"
#include "models/data/transforms.h"

namespace baton::data {

struct LoaderOptions {
  int64_t batch = 32;
  bool shuffle = false;      // uses a RandomSampler
  uint64_t seed = 0;         // for the order and random transforms
  bool drop_last = false;    // leaves out a last batch that is smaller
  int workers = 2;           // threads; 0: Next does the work itself
  int prefetch = 4;          // the most batches made ahead, by all workers
  Transform transform = {};  // empty: only converts to f32
  // Replaces `shuffle`, for example to load a share of the samples. Its indices
  // must be valid in the data set.
  std::shared_ptr<const Sampler> sampler = nullptr;
  // The device of the batches, see BatchLoaderOptions.
  Device device = Device::Cpu();
  bool pinned = false;
  // How long Next waits for a batch. A worker takes longer only if its disk
  // hangs.
  std::chrono::milliseconds deadline{120'000};
};

struct Batch {
  Tensor images;  // f32 [N, C, H, W], channels-last
  Tensor labels;  // i64 [N]
  int64_t size() const { return labels.dim(0); }
};

// Makes batches of a data set of images on threads, ahead of their use. For
// other data use BatchLoader. Order and random transforms depend only on seed
// and epoch, not on the number of workers.
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
  // InvalidArgument if the options are invalid or the data set is empty.
  static absl::StatusOr<std::unique_ptr<Loader>> Make(
      std::shared_ptr<const Dataset> dataset, LoaderOptions options);

  int64_t batches() const { return batches_->batches(); }  // an epoch
  int64_t samples() const { return samples_; }             // an epoch
  const Dataset& dataset() const { return *dataset_; }

  // These are as in BatchLoader. Errors name the sample.
  void StartEpoch(int64_t epoch) { batches_->StartEpoch(epoch); }
  absl::StatusOr<std::optional<Batch>> Next();

  int64_t epoch() const { return batches_->epoch(); }
  int64_t batch() const { return batches_->batch(); }
  std::map<std::string, Tensor> ExportState() const {
    return batches_->ExportState();
  }
  absl::Status ImportState(const std::map<std::string, Tensor>& state) {
    return batches_->ImportState(state);
  }

 private:
  Loader(std::shared_ptr<const Dataset> dataset, int64_t samples,
         std::unique_ptr<BatchLoader> batches);

  const std::shared_ptr<const Dataset> dataset_;
  const int64_t samples_;
  const std::unique_ptr<BatchLoader> batches_;
};

}  // namespace baton::data
