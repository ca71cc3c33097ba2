// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/toy_model.h"

#include "autograd/functions/activation.h"

namespace baton::models {

ToyModel::ToyModel(Generator& generator)
    : net1_(MakeModule<nn::Linear>("net1", kIn, kHidden, generator)),
      net2_(MakeModule<nn::Linear>("net2", kHidden, kOut, generator)) {}

Variable ToyModel::Forward(const Variable& x) {
  return ForwardBack(ForwardFront(x));
}

Variable ToyModel::ForwardFront(const Variable& x) {
  return autograd::Relu(net1_(x));
}

Variable ToyModel::ForwardBack(const Variable& hidden) { return net2_(hidden); }

}  // namespace baton::models
