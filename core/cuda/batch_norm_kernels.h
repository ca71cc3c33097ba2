// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/cuda/batch_norm_plan.h"
#include "core/cuda/launch.h"
#include "core/tensor.h"

// Launches of batch norm's kernels. Tensors of x's size have one dtype and the
// order that their NormView describes; per-channel tensors [C] and partial sums
// are contiguous and of the compute type. An undefined tensor means that there
// is none.
namespace baton::cuda {

struct NormForward {
  Tensor x = {}, residual = {}, y = {};
  Tensor gamma = {}, beta = {}, running_mean = {}, running_variance = {};
  Tensor batches = {};  // incremented
  // These are undefined in eval.
  Tensor mean = {}, inverse_stddev = {}, scale = {}, shift = {};
  bool relu = false;
  double inverse_count = 0, unbias = 0, eps = 0, momentum = 0;
};

struct NormBackward {
  Tensor dy = {}, x = {};
  Tensor y = {};  // defined if the ReLU's mask is y > 0
  Tensor g = {};  // if defined, gets dy through the mask
  Tensor dx = {};
  Tensor gamma = {}, mean = {}, inverse_stddev = {}, variance = {};
  Tensor scale = {}, shift = {};  // define the mask with `relu` and no y
  Tensor dgamma = {}, dbeta = {};
  bool relu = false;
  double inverse_count = 0, eps = 0;
  bool through_statistics = true;
};

// Returns how many blocks of kNormThreads threads, in clusters, run at once,
// with one block on a multiprocessor.
int ClusteredBlocks(const Launch& launch);

// Returns an uninitialised [groups, partials, 2, width].
Tensor EmptyPartials(const NormGrid& grid, const Tensor& x);

void LaunchMoments(const Launch& launch, const NormView& view,
                   const NormGrid& grid, const Tensor& x,
                   const Tensor& partials);
// Computes counts, means and variances, [3, C], from the partial sums.
void LaunchFinishMoments(const Launch& launch, const NormView& view,
                         const NormGrid& grid, const Tensor& x,
                         const Tensor& partials, const Tensor& moments);
// Normalises by the `count` partial sums of each channel or, if `partials` is
// undefined, by the running statistics.
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
