// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// [source]
#include "part.h"

#include "baton/autograd/functions/activation.h"
#include "baton/core/random.h"
#include "baton/models/distributed/module.h"

Part::Part(uint64_t seed, int64_t in, int64_t hidden, int64_t out) {
  baton::Generator generator(seed);
  first_ = &MakeModule<baton::nn::Linear>("first", in, hidden, generator);
  second_ = &MakeModule<baton::nn::Linear>("second", hidden, out, generator);
}

baton::Variable Part::Forward(const baton::Variable& x) {
  return second_->Forward(baton::autograd::Tanh(first_->Forward(x)));
}

void AddPart(baton::rpc::Registry& registry) {
  baton::dist::RegisterModule<Part>(registry);
}
// [end]
