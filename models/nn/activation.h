// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "models/nn/module.h"

// Element-wise layers without parameters. Thread-compatible.
namespace baton::nn {

class ReLU final : public Module {
 public:
  Variable Forward(const Variable& x) override;
};

class Sigmoid final : public Module {
 public:
  Variable Forward(const Variable& x) override;
};

class Tanh final : public Module {
 public:
  Variable Forward(const Variable& x) override;
};

// The exact form, with erf.
class GELU final : public Module {
 public:
  Variable Forward(const Variable& x) override;
};

// x where it is positive, else x * slope.
class LeakyReLU final : public Module {
 public:
  explicit LeakyReLU(double slope = 0.01) : slope_(slope) {}
  Variable Forward(const Variable& x) override;

 private:
  const double slope_;
};

// x * sigmoid(x).
class SiLU final : public Module {
 public:
  Variable Forward(const Variable& x) override;
};

}  // namespace baton::nn
