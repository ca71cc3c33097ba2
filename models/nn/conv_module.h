// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/random.h"
#include "models/nn/module.h"

namespace baton::nn {

// How weights are initialized: as in a new layer of PyTorch's, or as in
// torchvision's ResNets by KaimingNormal with fan-out and a bias of 0.
enum class ConvInit { kDefault, kKaimingFanOut };

// The base of convolution layers. Has the parameters "weight" and, unless
// turned off, "bias". Thread-compatible.
class ConvModule : public Module {
 public:
  const Variable& weight() const { return weight_; }
  const Variable* bias() const { return bias_; }  // null if there is none

 protected:
  // The weight is [rows, columns / groups, kernel...], the bias has `bias`
  // elements; 0: there is none. The constructor throws Error, whose text begins
  // with `op`, unless groups divide rows and columns.
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
