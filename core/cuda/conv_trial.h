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

// Runs plans of one problem on its operands, to measure and check them. Waits
// for the GPU. Confined to one thread.
class ConvTrial {
 public:
  // `sum` is the output of a problem that accumulates, as a tensor of one axis.
  ConvTrial(const Launch& launch, cudnnHandle_t handle,
            const ConvOperands& operands, const Tensor& sum);

  // Returns the milliseconds of a usual run. Returns kNever if the plan does
  // not run, or takes so much longer than `best` that measuring again is no
  // use.
  double Time(const ConvPlan& plan, void* workspace, double best);
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Returns true if the plan adds to its output, or need not: cuDNN 9.14 offers
  // engines that overwrite it (TF32, 1x1 of 960 rows and more).
  bool Adds(const ConvPlan& plan, void* workspace);

 private:
  double Batch(const ConvPlan& plan, void* workspace, int runs);
  // Returns some elements of the output of the plan when all of them were
  // `before`.
  std::vector<double> SumFrom(double before, const ConvPlan& plan,
                              void* workspace);

  const cudnnHandle_t handle_;
  const ConvOperands operands_;
  const Tensor sum_;
  const Stream stream_;
  Event begin_, end_;
};

}  // namespace baton::cuda
