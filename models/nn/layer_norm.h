// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "models/nn/module.h"

namespace baton::nn {

// Normalizes each row of x [..., shape], which has shape.numel() elements, by
// its mean and biased variance. Parameters "weight" (ones at first) and "bias"
// (zeros) of `shape`. Thread-compatible.
class LayerNorm final : public Module {
 public:
  // Throws Error for a shape without elements.
  explicit LayerNorm(const Shape& shape, double eps = 1e-5);
  Variable Forward(const Variable& x) override;

  const Variable& weight() const { return weight_; }
  const Variable& bias() const { return bias_; }

 protected:
  bool KeepsPrecision() const override { return true; }

 private:
  const double eps_;
  Variable& weight_;
  Variable& bias_;
};

}  // namespace baton::nn
