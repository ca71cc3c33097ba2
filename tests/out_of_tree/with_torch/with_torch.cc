// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A layer of PyTorch as a module of an installed Baton.

#include <torch/torch.h>

#include <cstdio>

#include "baton/autograd/variable.h"
#include "baton/core/tensor.h"
#include "baton/models/torch/torch_module.h"

int main() {
  torch::nn::Linear layer(2, 1);
  torch::nn::init::constant_(layer->weight, 3);
  torch::nn::init::constant_(layer->bias, 1);
  baton::nn::TorchModule module(layer);
  const baton::Variable y =
      module.Forward(baton::Variable(baton::Tensor::Ones({4, 2})));
  if (y.tensor().ToVector<float>()[3] != 7) return 1;
  std::printf("with torch: fine\n");
  return 0;
}
