// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/norm.h"

// These are the functions of core/ops/norm.h for GPUs, called after the op has
// checked the arguments. Nothing is read back to the host. No kernel uses
// atomics: the order of sums depends only on shape, dtype and model of GPU, so
// equal calls give equal bits.
//
// A small x is read once: a cluster of blocks owns a group of channels, keeps
// its part of x in shared memory, and computes statistics and result in one
// kernel. A large x takes two kernels: the first computes sums over slabs of
// rows; the second adds up the slabs' few sums and computes the result. The
// second walks x from the other end, to find in the L2 cache what the first has
// left there. Reads and writes of tensors of x's size:
//
//                                one kernel   two kernels
//   train                             2             3
//   train, residual                   3             4
//   eval (with residual)              -           2 (3), in one kernel
//   backward                          3             5
//   backward, residual and ReLU       5             7
//
// In the last line, the sums read dy, x and y and write g = dy * (y > 0), which
// is the residual's gradient; dx reads g and x. Masking dy by y again would
// take 8. In all other cases the residual's gradient is dy itself, and the
// ReLU's mask is recomputed from x.
namespace baton::cuda {

ops::BatchNormResult BatchNormTrain(const Tensor& x, const Tensor& gamma,
                                    const Tensor& beta, const Tensor& residual,
                                    const Tensor& running_mean,
                                    const Tensor& running_variance,
                                    const ops::BatchNormOptions& options,
                                    const Tensor& batches);
// Runs two kernels; the second has one block for 256 channels.
Tensor BatchMoments(const Tensor& x);
Tensor JoinMoments(const Tensor& batches);
// See core/ops/norm.h. All tensors are on one GPU.
void UpdateRunningStatistics(const std::vector<ops::RunningUpdate>& updates);

Tensor BatchNormEval(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const Tensor& residual, const Tensor& running_mean,
                     const Tensor& running_variance,
                     const ops::BatchNormOptions& options);

ops::BatchNormGradients BatchNormBackward(const Tensor& dy, const Tensor& x,
                                          const Tensor& gamma,
                                          const ops::BatchNormResult& forward,
                                          bool has_residual,
                                          const ops::BatchNormOptions& options);
ops::BatchNormGradients BatchNormEvalBackward(
    const Tensor& dy, const Tensor& x, const Tensor& y, const Tensor& gamma,
    const Tensor& running_mean, const Tensor& running_variance,
    bool has_residual, const ops::BatchNormOptions& options);

}  // namespace baton::cuda
