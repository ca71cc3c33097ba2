// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/functions/shape.h"
#include "models/nn/module.h"

namespace baton::nn {

// x [N, ...] -> [N, elements of the rest]. Thread-compatible.
class Flatten final : public Module {
 public:
  Variable Forward(const Variable& x) override {
    return autograd::Flatten(x, 1);
  }
};

}  // namespace baton::nn
