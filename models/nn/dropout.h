// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "models/nn/module.h"

namespace baton::nn {

// While training, zeroes elements with probability p in [0, 1) and scales the
// rest by 1 / (1 - p); returns x in eval mode. It has a generator of its own,
// so that its numbers do not depend on other layers. Thread-compatible.
class Dropout final : public Module {
 public:
  Dropout(double p, uint64_t seed);
  Variable Forward(const Variable& x) override;

  Generator& generator() { return generator_; }

 private:
  const double p_;
  Generator& generator_;
};

}  // namespace baton::nn
