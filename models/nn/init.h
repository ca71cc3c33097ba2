// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/random.h"
#include "core/tensor.h"

// These functions fill tensors in place by PyTorch's formulas. A weight's
// fan-in is the size of axis 1, its fan-out that of axis 0, each multiplied by
// the elements of the kernel (the further axes); weights have rank 2 or more.
namespace baton::nn {

enum class Fan { kIn, kOut };

struct KaimingOptions {
  Fan fan = Fan::kIn;
  double negative_slope = 0;  // of the leaky ReLU that follows; 0: plain ReLU
};

// He et al., "Delving deep into rectifiers", ICCV 2015: gain = sqrt(2 / (1 +
// slope^2)), uniform in +-gain * sqrt(3 / fan) or normal by gain / sqrt(fan).
void KaimingUniform(const Tensor& weight, const KaimingOptions& options,
                    Generator& generator);
void KaimingNormal(const Tensor& weight, const KaimingOptions& options,
                   Generator& generator);

// Glorot and Bengio, "Understanding the difficulty of training deep feedforward
// neural networks", AISTATS 2010: variance gain^2 * 2 / (fan-in + fan-out).
void XavierUniform(const Tensor& weight, double gain, Generator& generator);
void XavierNormal(const Tensor& weight, double gain, Generator& generator);

// The initialization of a new Conv2d or Linear: weight and bias (if defined)
// are uniform in +-1 / sqrt(fan-in of the weight).
void DefaultInit(const Tensor& weight, const Tensor& bias,
                 Generator& generator);

}  // namespace baton::nn
