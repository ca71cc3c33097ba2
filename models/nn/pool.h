// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/pool.h"
#include "models/nn/module.h"

// Pooling layers over the windows of x [N, C, H, W]; they have no parameters.
// Thread-compatible.
namespace baton::nn {

class MaxPool2d final : public Module {
 public:
  explicit MaxPool2d(const ops::Pool2dOptions& options = {})
      : options_(options) {}
  Variable Forward(const Variable& x) override;

 private:
  const ops::Pool2dOptions options_;
};

// Padded zeros count in the mean.
class AvgPool2d final : public Module {
 public:
  explicit AvgPool2d(const ops::Pool2dOptions& options = {})
      : options_(options) {}
  Variable Forward(const Variable& x) override;

 private:
  const ops::Pool2dOptions options_;
};

// Averages into height x width cells, whatever the size of x.
class AdaptiveAvgPool2d final : public Module {
 public:
  AdaptiveAvgPool2d(int64_t height, int64_t width)
      : height_(height), width_(width) {}
  Variable Forward(const Variable& x) override;

 private:
  const int64_t height_;
  const int64_t width_;
};

}  // namespace baton::nn
