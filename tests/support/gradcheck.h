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

// Returns f64 values, uniform in [low, high). Each call returns other values,
// but they are the same in every run.
Tensor Random(const Shape& shape, double low = -1, double high = 1);

struct GradCheckOptions {
  double step = 1e-5;  // of the central differences
  double tolerance = 1e-6;
  // The tolerance of f32 results and gradients against f64 ones, relative to
  // the largest; the f32 kernels are often different code. 0: no comparison.
  double f32_tolerance = 2e-5;
};

// Puts `inputs` on the test's device (test_device.h). Compares the gradients of
// a random weighting of f's result with central differences in f64. Also checks
// that the gradient of each input alone has the same bits, and that f32 agrees
// with f64.
::testing::AssertionResult GradCheck(const Function& f,
                                     const std::vector<Tensor>& inputs,
                                     const GradCheckOptions& options = {});

}  // namespace baton::testing
