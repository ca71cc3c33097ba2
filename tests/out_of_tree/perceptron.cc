// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "perceptron.h"

#include "baton/autograd/functions/activation.h"
#include "baton/core/random.h"
#include "baton/models/distributed/module.h"

Perceptron::Perceptron(uint64_t seed, int64_t in, int64_t hidden, int64_t out) {
  baton::Generator generator(seed);
  first_ = &MakeModule<baton::nn::Linear>("first", in, hidden, generator);
  second_ = &MakeModule<baton::nn::Linear>("second", hidden, out, generator);
}

absl::StatusOr<std::unique_ptr<Perceptron>> Perceptron::Make(uint64_t seed,
                                                             int64_t in,
                                                             int64_t hidden,
                                                             int64_t out) {
  if (in < 1 || hidden < 1 || out < 1)
    return absl::InvalidArgumentError("a layer needs 1 unit or more");
  return std::make_unique<Perceptron>(seed, in, hidden, out);
}

baton::Variable Perceptron::Forward(const baton::Variable& x) {
  return second_->Forward(baton::autograd::Tanh(first_->Forward(x)));
}

void AddPerceptron(baton::rpc::Registry& registry) {
  baton::dist::RegisterModule<Perceptron>(registry);
}
