// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "models/nn/module.h"

namespace baton::nn {

// Normalizes x [N, channels, ...]: in each image, the channels / groups
// channels of a group are normalized by their common mean and biased variance.
// Parameters "weight" (ones at first) and "bias" (zeros) [channels].
// Thread-compatible.
class GroupNorm final : public Module {
 public:
  // Throws Error unless groups divide channels.
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5);
  Variable Forward(const Variable& x) override;

  const Variable& weight() const { return weight_; }
  const Variable& bias() const { return bias_; }

 protected:
  bool KeepsPrecision() const override { return true; }

 private:
  const int64_t groups_;
  const double eps_;
  Variable& weight_;
  Variable& bias_;
};

}  // namespace baton::nn
