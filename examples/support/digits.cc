// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/digits.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/data/open.h"
#include "models/nn/scopes.h"

namespace baton::examples {
namespace {

constexpr int64_t kSide = 28;
constexpr int64_t kHeldOut = 10;     // one in so many
constexpr int64_t kEvaluated = 500;  // images at a time

absl::StatusOr<Digits> LoadAll(const data::Dataset& dataset) {
  const int64_t count = dataset.size();
  Digits all{.images = Tensor::Empty({count, 1, kSide, kSide}),
             .labels = Tensor::Empty({count}, {.dtype = DType::kI64})};
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const data::Sample sample, dataset.Get(i));
    if (sample.image.shape() != Shape({1, kSide, kSide})) {
      return absl::InvalidArgumentError(
          absl::StrCat(dataset.Describe(i), " is ",
                       sample.image.shape().ToString(), ", not [1, 28, 28]"));
    }
    all.images.Select(0, i).CopyFrom(sample.image);
    all.labels.data<int64_t>()[i] = sample.label;
  }
  float* pixels = all.images.data<float>();
  std::transform(pixels, pixels + all.images.numel(), pixels,
                 [](float x) { return x / 255; });
  return all;
}

}  // namespace

Digits Digits::Take(const std::vector<int64_t>& samples) const {
  const auto count = static_cast<int64_t>(samples.size());
  Digits taken{.images = Tensor::Empty({count, 1, kSide, kSide}),
               .labels = Tensor::Empty({count}, {.dtype = DType::kI64})};
  constexpr int64_t kPixels = kSide * kSide;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = samples[static_cast<size_t>(i)];
    std::copy_n(images.data<float>() + from * kPixels, kPixels,
                taken.images.data<float>() + i * kPixels);
    taken.labels.data<int64_t>()[i] = labels.data<int64_t>()[from];
  }
  return taken;
}

absl::StatusOr<SplitDigits> LoadDigits(const std::string& path) {
  ASSIGN_OR_RETURN(const std::shared_ptr<data::Dataset> dataset,
                   data::OpenDataset(path));
  ASSIGN_OR_RETURN(const Digits all, LoadAll(*dataset));
  std::vector<int64_t> training, held_out;
  for (int64_t i = 0; i < all.size(); ++i)
    (i % kHeldOut == 0 ? held_out : training).push_back(i);
  if (training.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has too few images to train on"));
  }
  return SplitDigits{.training = all.Take(training),
                     .held_out = all.Take(held_out)};
}

int64_t CountRight(nn::Module& model, const Digits& digits) {
  const nn::EvalScope evaluating(model);
  const NoGrad no_grad;
  int64_t right = 0;
  for (int64_t begin = 0; begin < digits.size(); begin += kEvaluated) {
    const int64_t end = std::min(begin + kEvaluated, digits.size());
    const Variable images = model.Placed(digits.images.Slice(0, begin, end));
    const Tensor logits = model.Forward(images).tensor().To(Device::Cpu());
    const auto scores = logits.ToVector<float>();
    const int64_t classes = logits.dim(1);
    for (int64_t i = begin; i < end; ++i) {
      const auto row = scores.begin() + (i - begin) * classes;
      right += std::max_element(row, row + classes) - row ==
               digits.labels.data<int64_t>()[i];
    }
  }
  return right;
}

}  // namespace baton::examples
