// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/synthetic.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/data/sample_random.h"

namespace baton::data {

Synthetic::Synthetic(const SyntheticOptions& options) : options_(options) {
  Require(options.size > 0 && options.channels > 0 && options.height > 0 &&
              options.width > 0 && options.classes > 0,
          "synthetic", "size, extents and classes must be positive");
  for (int64_t i = 0; i < options.classes; ++i)
    classes_.push_back(std::to_string(i));
}

absl::StatusOr<Sample> Synthetic::Get(int64_t index) const {
  SampleRandom random(options_.seed, 0, static_cast<uint64_t>(index));
  const int64_t label = random.Below(options_.classes);
  const Tensor pixels =
      Tensor::Empty({options_.height, options_.width, options_.channels});
  float* out = pixels.data<float>();
  const int64_t count = pixels.numel();
  for (int64_t i = 0; i < count; i += 2) {  // Box and Muller's pairs
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    const double angle = 2 * std::numbers::pi * random.Uniform();
    out[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < count)
      out[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return Sample{.image = pixels.Permute({2, 0, 1}), .label = label};
}

std::string Synthetic::Describe(int64_t index) const {
  return absl::StrCat("synthetic image ", index);
}

}  // namespace baton::data
