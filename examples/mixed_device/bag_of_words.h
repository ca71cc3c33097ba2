// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "models/nn/embedding.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"

namespace baton::examples {

// Classifies texts, word ids [N, L], by the mean of their embeddings. It uses
// two devices: the table, which may be larger than a GPU's memory, stays on
// one, and the linear layer computes on the other. Forward takes ids on the
// table's device and returns logits [N, classes] on the other; gradients go
// back the same way. Thread-compatible.
class BagOfWords final : public nn::Module {
 public:
  struct Options {
    int64_t words = 1000;
    int64_t width = 32;
    int64_t classes = 4;
    Device table = Device::Cpu();
    Device linear = Device::Cpu();
    uint64_t seed = 0;
  };
  // Throws Error if a device does not exist.
  explicit BagOfWords(const Options& options);
  Variable Forward(const Variable& ids) override;

 private:
  const Device device_;  // of the linear layer
  nn::Embedding& table_;
  nn::Linear& linear_;
};

}  // namespace baton::examples
