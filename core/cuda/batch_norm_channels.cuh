// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

// Computes coefficients of channels from their sums, in double. One thread
// computes one channel.
namespace baton::cuda {

template <typename A>
struct NormAffine {
  A scale, shift;  // y = x * scale + shift
};

// Arrays [C]; null if there is none.
template <typename A>
struct ForwardChannels {
  const A *gamma, *beta;
  A *running_mean, *running_variance;
  int64_t* batches;
  A *mean, *inverse_stddev, *scale, *shift;  // written
  double inverse_count, unbias, eps, momentum;

  __device__ NormAffine<A> FromStatistics(int channel, double mean_value,
                                          double inverse) const {
    const double factor =
        (gamma != nullptr ? static_cast<double>(gamma[channel]) : 1.0) *
        inverse;
    const double start =
        beta != nullptr ? static_cast<double>(beta[channel]) : 0.0;
    return {static_cast<A>(factor),
            static_cast<A>(start - mean_value * factor)};
  }
  __device__ NormAffine<A> FromRunning(int channel) const {
    return FromStatistics(
        channel, static_cast<double>(running_mean[channel]),
        rsqrt(static_cast<double>(running_variance[channel]) + eps));
  }
  // Computes the coefficients from the sums of x - center and of its square.
  // With `keep`, also stores the statistics.
  __device__ NormAffine<A> FromMoments(int channel, A center, A first, A second,
                                       bool keep) const {
    const double distance = static_cast<double>(first) * inverse_count;
    const double mean_value = static_cast<double>(center) + distance;
    double variance =
        static_cast<double>(second) * inverse_count - distance * distance;
    if (variance < 0) variance = 0;  // this way round NaN passes
    const double inverse = rsqrt(variance + eps);
    const NormAffine<A> affine = FromStatistics(channel, mean_value, inverse);
    if (keep) {
      mean[channel] = static_cast<A>(mean_value);
      inverse_stddev[channel] = static_cast<A>(inverse);
      scale[channel] = affine.scale;
      shift[channel] = affine.shift;
      Track(running_mean, channel, mean_value);
      Track(running_variance, channel, variance * unbias);
      if (channel == 0 && batches != nullptr) ++*batches;
    }
    return affine;
  }

 private:
  __device__ void Track(A* running, int channel, double batch) const {
    if (running == nullptr) return;
    if (momentum == 1) {  // the former value does not count, even if NaN
      running[channel] = static_cast<A>(batch);
      return;
    }
    const auto old = static_cast<double>(running[channel]);
    running[channel] = static_cast<A>(old + momentum * (batch - old));
  }
};

template <typename A>
struct GradientAffine {
  A scale, slope, offset;  // dx = g * scale + x * slope + offset
};

template <typename A>
struct BackwardChannels {
  // `scale` and `shift` are null if the forward did not keep them. In eval,
  // inverse_stddev is null and computed from the variance.
  const A *gamma, *mean, *inverse_stddev, *variance, *scale, *shift;
  A *dgamma, *dbeta;  // written
  double inverse_count, eps;
  bool through_statistics;

  // Computes the coefficients from the sums of g and of g * (x - mean).
  __device__ GradientAffine<A> FromSums(int channel, A first, A second,
                                        bool keep) const {
    const double inverse =
        inverse_stddev != nullptr
            ? static_cast<double>(inverse_stddev[channel])
            : rsqrt(static_cast<double>(variance[channel]) + eps);
    if (keep) {
      dgamma[channel] = static_cast<A>(static_cast<double>(second) * inverse);
      dbeta[channel] = first;
    }
    double factor = inverse;
    if (gamma != nullptr) factor *= static_cast<double>(gamma[channel]);
    const A own = scale != nullptr ? scale[channel] : static_cast<A>(factor);
    if (!through_statistics) return {own, A(0), A(0)};
    const double slope = -factor * inverse * inverse *
                         static_cast<double>(second) * inverse_count;
    const double offset = -factor * static_cast<double>(first) * inverse_count -
                          slope * static_cast<double>(mean[channel]);
    return {own, static_cast<A>(slope), static_cast<A>(offset)};
  }
};

}  // namespace baton::cuda
