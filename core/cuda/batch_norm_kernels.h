// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/cuda/batch_norm_plan.h"
#include "core/cuda/launch.h"
#include "core/tensor.h"

// Launches of batch norm's kernels. Big tensors are of one dtype and as their
// NormView says; what is [C], and partials, is contiguous in the compute type.
// Undefined: there is none.
namespace baton::cuda {

struct NormForward {
  Tensor x = {}, residual = {}, y = {};
  Tensor gamma = {}, beta = {}, running_mean = {}, running_variance = {};
  Tensor batches = {};  // counted up
  // Undefined in eval.
  Tensor mean = {}, inverse_stddev = {}, scale = {}, shift = {};
  bool relu = false;
  double inverse_count = 0, unbias = 0, eps = 0, momentum = 0;
};

struct NormBackward {
  Tensor dy = {}, x = {};
  Tensor y = {};  // where it decides the ReLU's mask
  Tensor g = {};  // where dy through the mask is written
  Tensor dx = {};
  Tensor gamma = {}, mean = {}, inverse_stddev = {}, variance = {};
  Tensor scale = {}, shift = {};  // with `relu` and no y they decide the mask
  Tensor dgamma = {}, dbeta = {};
  bool relu = false;
  double inverse_count = 0, eps = 0;
  bool through_statistics = true;
};

// As many clusters' blocks of kNormThreads threads as run at once, one a
// multiprocessor.
int ClusteredBlocks(const Launch& launch);

// [groups, partials, 2, width]
Tensor EmptyPartials(const NormGrid& grid, const Tensor& x);

void LaunchMoments(const Launch& launch, const NormView& view,
                   const NormGrid& grid, const Tensor& x,
                   const Tensor& partials);
// From `count` of their sums to counts, means and variances, [3, C].
void LaunchFinishMoments(const Launch& launch, const NormView& view,
                         const NormGrid& grid, const Tensor& x,
                         const Tensor& partials, const Tensor& moments);
// By the running statistics where `partials` is undefined; `count` of them.
void LaunchApply(const Launch& launch, const NormView& view,
                 const NormGrid& grid, const NormForward& args,
                 const Tensor& partials, int count);
void LaunchOwnerForward(const Launch& launch, const NormView& view,
                        const NormGrid& grid, const NormForward& args);

void LaunchGradientSums(const Launch& launch, const NormView& view,
                        const NormGrid& grid, const NormBackward& args,
                        const Tensor& partials);
void LaunchInputGradient(const Launch& launch, const NormView& view,
                         const NormGrid& grid, const NormBackward& args,
                         const Tensor& partials, int count);
void LaunchOwnerBackward(const Launch& launch, const NormView& view,
                         const NormGrid& grid, const NormBackward& args);

}  // namespace baton::cuda
