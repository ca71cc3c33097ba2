// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/data/dataset.h"

namespace baton::data {

struct SyntheticOptions {
  int64_t size = 1000;
  int64_t channels = 3;
  int64_t height = 128;
  int64_t width = 128;
  int64_t classes = 1000;
  uint64_t seed = 0;
};

// Random images, normal(0, 1), f32 [C, H, W], with random labels; sample i
// depends only on seed and i. Needs no files. Thread-safe.
class Synthetic final : public Dataset {
 public:
  // Throws Error unless all extents are positive.
  explicit Synthetic(const SyntheticOptions& options);

  int64_t size() const override { return options_.size; }
  absl::StatusOr<Sample> Get(int64_t index) const override;
  std::string Describe(int64_t index) const override;
  const std::vector<std::string>& classes() const override { return classes_; }

 private:
  const SyntheticOptions options_;
  std::vector<std::string> classes_;
};

}  // namespace baton::data
