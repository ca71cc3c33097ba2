// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor.h"

namespace baton::data {

struct Sample {
  Tensor image;  // [C, H, W]: u8 as stored, or f32; any strides
  int64_t label = 0;
};

// Labeled images by index. Thread-safe: loaders call Get from many threads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  // Returns sample `index`, in [0, size). Errors name the file.
  virtual absl::StatusOr<Sample> Get(int64_t index) const = 0;
  // Returns, for messages, where sample `index` comes from.
  virtual std::string Describe(int64_t index) const = 0;
  // Returns the names of the labels 0, 1, ...
  virtual const std::vector<std::string>& classes() const = 0;
};

}  // namespace baton::data
