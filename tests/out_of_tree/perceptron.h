// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "baton/autograd/variable.h"
#include "baton/models/nn/linear.h"
#include "baton/models/nn/module.h"
#include "baton/rpc/exports.h"
#include "baton/rpc/registry.h"

// Two layers with a tanh between them; lives at a worker, trained from afar.
class Perceptron final : public baton::nn::Module {
 public:
  Perceptron(uint64_t seed, int64_t in, int64_t hidden, int64_t out);
  // Fails for a size below 1.
  static absl::StatusOr<std::unique_ptr<Perceptron>> Make(uint64_t seed,
                                                          int64_t in,
                                                          int64_t hidden,
                                                          int64_t out);
  baton::Variable Forward(const baton::Variable& x) override;
  using Exports = baton::rpc::Methods<&Perceptron::Make, &Perceptron::Forward>;

 private:
  baton::nn::Linear* first_;
  baton::nn::Linear* second_;
};

// What the plug-in adds to a daemon.
void AddPerceptron(baton::rpc::Registry& registry);
