// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::data {
namespace {

absl::Status Check(const Dataset* dataset, const LoaderOptions& o) {
  if (dataset == nullptr || dataset->size() == 0)
    return absl::InvalidArgumentError("Loader: the data set is empty");
  if (o.batch < 1 || o.workers < 0 || o.prefetch < 1)
    return absl::InvalidArgumentError(absl::StrCat(
        "Loader: expected batch >= 1, workers >= 0 and prefetch >= 1, got ",
        o.batch, ", ", o.workers, " and ", o.prefetch));
  return absl::OkStatus();
}

std::shared_ptr<const Sampler> SamplerOf(const Dataset& dataset,
                                         const LoaderOptions& o) {
  if (o.sampler != nullptr) return o.sampler;
  if (!o.shuffle) return std::make_shared<SequentialSampler>(dataset.size());
  return std::make_shared<RandomSampler>(dataset.size(),
                                         RandomSamplerOptions{.seed = o.seed});
}

// Makes batches of a data set's images and labels.
class ImageBatches {
 public:
  ImageBatches(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
      : dataset_(std::move(dataset)), options_(std::move(options)) {}

  absl::StatusOr<Tensors> operator()(
      int64_t epoch, const std::vector<int64_t>& samples) const {
    const auto count = static_cast<int64_t>(samples.size());
    const bool pinned = options_.pinned || options_.device.is_cuda();
    Tensor images, labels;
    Shape first;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = samples[static_cast<size_t>(i)];
      ASSIGN_OR_RETURN(const Sample sample, MakeSample(epoch, index));
      if (i == 0) {
        first = sample.image.shape();
        images = Tensor::Empty(
            {count, first[0], first[1], first[2]},
            {.format = MemoryFormat::kChannelsLast, .pinned = pinned});
        labels =
            Tensor::Empty({count}, {.dtype = DType::kI64, .pinned = pinned});
      } else if (sample.image.shape() != first) {
        return absl::InvalidArgumentError(absl::StrCat(
            dataset_->Describe(index), ": an image ",
            sample.image.shape().ToString(), " does not go into a batch of ",
            first.ToString(), "; resize or crop images to one size"));
      }
      images.Select(0, i).CopyFrom(sample.image);
      labels.data<int64_t>()[i] = sample.label;
    }
    return Tensors{images, labels};
  }

 private:
  absl::StatusOr<Sample> MakeSample(int64_t epoch, int64_t index) const {
    if (index < 0 || index >= dataset_->size()) {
      return absl::OutOfRangeError(
          absl::StrCat("Loader: the sampler asks for sample ", index,
                       " of a data set of ", dataset_->size()));
    }
    ASSIGN_OR_RETURN(Sample sample, dataset_->Get(index));
    SampleRandom random(options_.seed, static_cast<uint64_t>(epoch),
                        static_cast<uint64_t>(index));
    const absl::Status status = CatchErrors([&] {
      if (options_.transform)
        sample.image = options_.transform(sample.image, random);
      sample.image = ToFloat()(sample.image, random);
    });
    if (!status.ok()) return Annotate(status, dataset_->Describe(index));
    return sample;
  }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Loader>> Loader::Make(
    std::shared_ptr<const Dataset> dataset, LoaderOptions options) {
  RETURN_IF_ERROR(Check(dataset.get(), options));
  return CatchErrors([&]() -> absl::StatusOr<std::unique_ptr<Loader>> {
    const auto sampler = SamplerOf(*dataset, options);
    const auto batches = std::make_shared<FixedBatches>(sampler, options.batch,
                                                        options.drop_last);
    const int64_t samples =
        std::min(sampler->size(), batches->batches() * options.batch);
    const BatchLoaderOptions loading = {.workers = options.workers,
                                        .prefetch = options.prefetch,
                                        .device = options.device,
                                        .pinned = options.pinned,
                                        .deadline = options.deadline};
    ASSIGN_OR_RETURN(
        auto loader,
        BatchLoader::Make(batches, ImageBatches(dataset, options), loading));
    return std::unique_ptr<Loader>(
        new Loader(std::move(dataset), samples, std::move(loader)));
  });
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, int64_t samples,
               std::unique_ptr<BatchLoader> batches)
    : dataset_(std::move(dataset)),
      samples_(samples),
      batches_(std::move(batches)) {}

absl::StatusOr<std::optional<Batch>> Loader::Next() {
  ASSIGN_OR_RETURN(const std::optional<Tensors> batch, batches_->Next());
  if (!batch) return std::optional<Batch>();
  return std::optional<Batch>({(*batch)[0], (*batch)[1]});
}

}  // namespace baton::data
