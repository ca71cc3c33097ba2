// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/init.h"

#include <cmath>

#include "core/status.h"

namespace baton::nn {
namespace {

struct Fans {
  double in = 0;
  double out = 0;
};

Fans FansOf(const char* op, const Tensor& weight) {
  Require(weight.rank() >= 2, op, "expected a weight of rank 2 or more, got ",
          weight.shape().ToString());
  int64_t kernel = 1;
  for (int axis = 2; axis < weight.rank(); ++axis) kernel *= weight.dim(axis);
  return {static_cast<double>(weight.dim(1) * kernel),
          static_cast<double>(weight.dim(0) * kernel)};
}

double KaimingStddev(const char* op, const Tensor& weight,
                     const KaimingOptions& options) {
  const Fans fans = FansOf(op, weight);
  const double slope = options.negative_slope;
  return std::sqrt(2 / (1 + slope * slope)) /
         std::sqrt(options.fan == Fan::kIn ? fans.in : fans.out);
}

double XavierStddev(const char* op, const Tensor& weight, double gain) {
  const Fans fans = FansOf(op, weight);
  return gain * std::sqrt(2 / (fans.in + fans.out));
}

// Uniform in +-b has the variance b^2 / 3.
void FillUniformByStddev(const Tensor& tensor, double stddev,
                         Generator& generator) {
  const double bound = stddev * std::sqrt(3.0);
  FillUniform(tensor, -bound, bound, generator);
}

}  // namespace

void KaimingUniform(const Tensor& weight, const KaimingOptions& options,
                    Generator& generator) {
  FillUniformByStddev(weight, KaimingStddev("kaiming_uniform", weight, options),
                      generator);
}

void KaimingNormal(const Tensor& weight, const KaimingOptions& options,
                   Generator& generator) {
  FillNormal(weight, 0, KaimingStddev("kaiming_normal", weight, options),
             generator);
}

void XavierUniform(const Tensor& weight, double gain, Generator& generator) {
  FillUniformByStddev(weight, XavierStddev("xavier_uniform", weight, gain),
                      generator);
}

void XavierNormal(const Tensor& weight, double gain, Generator& generator) {
  FillNormal(weight, 0, XavierStddev("xavier_normal", weight, gain), generator);
}

void DefaultInit(const Tensor& weight, const Tensor& bias,
                 Generator& generator) {
  const double bound = 1 / std::sqrt(FansOf("default_init", weight).in);
  FillUniform(weight, -bound, bound, generator);
  if (bias.defined()) FillUniform(bias, -bound, bound, generator);
}

}  // namespace baton::nn
