// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <limits>
#include <vector>

#include "core/cuda/conv_plan.h"
#include "core/cuda/launch.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace baton::cuda {

// Runs plans of one problem on its operands to see what they are worth. Waits
// for the GPU. One thread's.
class ConvTrial {
 public:
  // `sum` is the output of a problem that accumulates, as one axis.
  ConvTrial(const Launch& launch, cudnnHandle_t handle,
            const ConvOperands& operands, const Tensor& sum);

  // Milliseconds of a usual run; infinite when it does not run, or takes so
  // much longer than `best` that another look is no use.
  double Time(const ConvPlan& plan, void* workspace, double best);
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Whether the plan adds to its output, if it is to: cuDNN 9.14 offers
  // engines that write over what was there (TF32, 1x1 of 960 rows and more).
  bool Adds(const ConvPlan& plan, void* workspace);

 private:
  double Batch(const ConvPlan& plan, void* workspace, int runs);
  // Some elements of what the plan makes of a sum that was `before` everywhere.
  std::vector<double> SumFrom(double before, const ConvPlan& plan,
                              void* workspace);

  const cudnnHandle_t handle_;
  const ConvOperands operands_;
  const Tensor sum_;
  const Stream stream_;
  Event begin_, end_;
};

}  // namespace baton::cuda
