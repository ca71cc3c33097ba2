// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "autograd/variable.h"

namespace baton::testing {

using Variables = std::vector<Variable>;
using Function = std::function<Variable(const Variables& inputs)>;

// f64, uniform in [low, high); every call gives other values, the same in
// every run.
Tensor Random(const Shape& shape, double low = -1, double high = 1);

struct GradCheckOptions {
  double step = 1e-5;  // of the central differences
  double tolerance = 1e-6;
  // How far f32 results and gradients may be from f64 ones, relative to the
  // largest; the f32 kernels are often other code. 0: not compared.
  double f32_tolerance = 2e-5;
};

// On the test's device (test_device.h), which it puts `inputs` on: compares the
// gradients of a random weighting of f's result with central differences in
// f64; checks that the gradient of each input alone has the same bits, and that
// f32 agrees with f64.
::testing::AssertionResult GradCheck(const Function& f,
                                     const std::vector<Tensor>& inputs,
                                     const GradCheckOptions& options = {});

}  // namespace baton::testing
