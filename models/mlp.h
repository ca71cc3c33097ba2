// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/random.h"
#include "models/nn/module.h"
#include "models/nn/sequential.h"

namespace baton::models {

struct MlpOptions {
  std::vector<int64_t> widths = {784, 256, 10};  // input, hidden ..., output
  double dropout = 0;  // after each hidden layer's ReLU
};

// Fully connected layers with ReLU between them: x [N, ...] is flattened to
// [N, widths.front()] and becomes [N, widths.back()]. Layers are named
// "layers.0", ... as in a Sequential. Throws Error for fewer than two widths.
// Thread-compatible.
class Mlp final : public nn::Module {
 public:
  Mlp(const MlpOptions& options, Generator& generator);
  Variable Forward(const Variable& x) override;

 private:
  nn::Sequential& layers_;
};

}  // namespace baton::models
