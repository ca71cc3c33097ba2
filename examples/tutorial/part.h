// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// [class]
#pragma once

#include <cstdint>

#include "baton/autograd/variable.h"
#include "baton/models/nn/linear.h"
#include "baton/models/nn/module.h"
#include "baton/rpc/exports.h"
#include "baton/rpc/registry.h"

// A part of a network: two linear layers with a tanh between them.
class Part final : public baton::nn::Module {
 public:
  Part(uint64_t seed, int64_t in, int64_t hidden, int64_t out);
  baton::Variable Forward(const baton::Variable& x) override;

  // What other processes may call; nothing else of it can be reached.
  using Exports = baton::rpc::Methods<
      baton::rpc::kConstructor<uint64_t, int64_t, int64_t, int64_t>,
      &Part::Forward>;

 private:
  baton::nn::Linear* first_;
  baton::nn::Linear* second_;
};

// Makes a process know the class.
void AddPart(baton::rpc::Registry& registry);
// [end]
