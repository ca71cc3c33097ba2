// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/random.h"
#include "models/nn/module.h"

namespace baton::nn {

// How weights start: as a new layer of PyTorch's, or as torchvision's ResNets,
// KaimingNormal by fan-out and a bias of 0.
enum class ConvInit { kDefault, kKaimingFanOut };

// What layers of convolutions have: parameters "weight" and, unless turned off,
// "bias". Thread-compatible.
class ConvModule : public Module {
 public:
  const Variable& weight() const { return weight_; }
  const Variable* bias() const { return bias_; }  // null without one

 protected:
  // A weight [rows, columns / groups, kernel...] and a bias of `out` elements,
  // 0 for none. Throws Error, led by `op`, unless groups divide both.
  struct Sizes {
    const char* op;
    int64_t rows, columns, groups;
    Dims kernel;
    int64_t bias;
  };
  ConvModule(const Sizes& sizes, ConvInit init, Generator& generator);
  Variable BiasOrNone() const { return bias_ ? *bias_ : Variable(); }

 private:
  Variable& weight_;
  Variable* bias_ = nullptr;
};

}  // namespace baton::nn
