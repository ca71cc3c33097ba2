// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "models/nn/module.h"

namespace baton::examples {

// Grey images of 28x28 and their labels. Immutable.
struct Digits {
  Tensor images;  // f32 [N, 1, 28, 28], in [0, 1]
  Tensor labels;  // i64 [N]

  int64_t size() const { return labels.dim(0); }
  Digits Take(const std::vector<int64_t>& samples) const;
};

struct SplitDigits {
  Digits training;
  Digits held_out;  // every tenth image
};

// Loads an IDX file of images with its labels beside it, such as MNIST's, or
// another data set that data::OpenDataset takes. InvalidArgument for images of
// another size.
absl::StatusOr<SplitDigits> LoadDigits(const std::string& path);

// Returns how many images the model classifies correctly, in eval mode. The
// model, on any device, maps [N, 1, 28, 28] to [N, classes]. Throws what its
// forward throws.
int64_t CountRight(nn::Module& model, const Digits& digits);

}  // namespace baton::examples
