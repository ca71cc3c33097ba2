// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu/batch_norm_passes.h"

namespace baton::cpu {
namespace {

// Returns the dtype in which statistics and results are computed.
DType ComputeDType(const Tensor& x) {
  return IsHalf(x.dtype()) ? DType::kF32 : x.dtype();
}

// Returns the tensor as kernels read it: in the compute type and dense in x's
// order.
Tensor Big(const Tensor& tensor, MemoryFormat format, DType dtype) {
  return tensor.defined() ? tensor.To(dtype).Contiguous(format) : tensor;
}

// Returns the values [C] in double; all are `fallback` if the tensor is
// undefined.
std::vector<double> PerChannel(const Tensor& tensor, int64_t channels,
                               double fallback) {
  if (!tensor.defined()) {
    return std::vector<double>(static_cast<size_t>(channels), fallback);
  }
  return tensor.To(DType::kF64).ToVector<double>();
}

Tensor FromDoubles(const std::vector<double>& values, DType dtype) {
  return Tensor::From(values).To(dtype);
}

// Computes new = old + momentum * (batch - old).
void Track(const Tensor& running, const std::vector<double>& batch,
           double momentum) {
  if (!running.defined()) return;
  if (momentum == 1) {
    running.CopyFrom(Tensor::From(batch));
    return;
  }
  std::vector<double> values = running.To(DType::kF64).ToVector<double>();
  for (size_t c = 0; c < values.size(); ++c)
    values[c] += momentum * (batch[c] - values[c]);
  running.CopyFrom(Tensor::From(values));
}

struct Statistics {
  std::vector<double> mean, variance;
};

Statistics BatchStatistics(const Tensor& x, double count) {
  const Tensor center = NormCenter(x);
  const std::vector<double> sums = NormMoments(x, center).ToVector<double>();
  Statistics result;
  result.mean = PerChannel(center, x.dim(1), 0.0);
  const size_t channels = result.mean.size();
  for (size_t c = 0; c < channels; ++c) {
    const double shift = sums[c] / count;
    result.mean[c] += shift;
    result.variance.push_back(
        std::max(sums[channels + c] / count - shift * shift, 0.0));
  }
  return result;
}

// Computes scale and shift, with y = x * scale + shift, from given statistics.
struct Affine {
  Affine(const Statistics& statistics, const Tensor& gamma, const Tensor& beta,
         double eps)
      : scale(PerChannel(gamma, Channels(statistics), 1.0)),
        shift(PerChannel(beta, Channels(statistics), 0.0)) {
    for (size_t c = 0; c < scale.size(); ++c) {
      inverse_stddev.push_back(1.0 / std::sqrt(statistics.variance[c] + eps));
      scale[c] *= inverse_stddev[c];
      shift[c] -= statistics.mean[c] * scale[c];
    }
  }
  static int64_t Channels(const Statistics& statistics) {
    return static_cast<int64_t>(statistics.mean.size());
  }
  std::vector<double> scale, shift, inverse_stddev;
};

Statistics RunningStatistics(const Tensor& mean, const Tensor& variance) {
  return {.mean = mean.To(DType::kF64).ToVector<double>(),
          .variance = variance.To(DType::kF64).ToVector<double>()};
}

// The part that both backwards share: g's sums, and the gradients that follow
// from them.
struct Backward {
  Backward(const Tensor& dy_in, const Tensor& x_in, const Tensor& y,
           const Tensor& scale, const Tensor& shift, bool relu)
      : user_dtype(x_in.dtype()),
        dtype(ComputeDType(x_in)),
        format(NormFormat(x_in)),
        x(Big(x_in, format, dtype)),
        dy(Big(dy_in, format, dtype)),
        mask{.relu = relu,
             .y = Big(y, format, dtype),
             .scale = scale,
             .shift = shift} {}

  // Sets gradients.dgamma and dbeta. With a residual, g is also the gradient of
  // the residual, and NormInputGradient then reads g instead of dy and y.
  void Sum(const Tensor& mean, const std::vector<double>& inverse_stddev,
           bool has_residual, DType gamma_dtype) {
    Tensor g;
    if (has_residual && mask.relu) {
      g = Tensor::Empty(x.shape(), {.dtype = dtype, .format = format});
    }
    sums = NormGradientSums(dy, x, mean, mask, g).ToVector<double>();
    if (g.defined()) {
      dy = g;
      mask.relu = false;
    }
    if (has_residual) gradients.dresidual = dy.To(user_dtype);
    const size_t channels = inverse_stddev.size();
    std::vector<double> dgamma(sums.begin() + static_cast<int64_t>(channels),
                               sums.end());
    for (size_t c = 0; c < channels; ++c) dgamma[c] *= inverse_stddev[c];
    gradients.dgamma = FromDoubles(dgamma, gamma_dtype);
    gradients.dbeta = FromDoubles(
        {sums.begin(), sums.begin() + static_cast<int64_t>(channels)},
        gamma_dtype);
  }

  void SetInputGradient(const std::vector<double>& slope,
                        const std::vector<double>& offset) {
    gradients.dx = NormInputGradient(dy, x, mask, FromDoubles(slope, dtype),
                                     FromDoubles(offset, dtype))
                       .To(user_dtype);
  }

  const DType user_dtype, dtype;
  const MemoryFormat format;
  const Tensor x;
  Tensor dy;
  NormMask mask;
  std::vector<double> sums;  // [2, C]
  ops::BatchNormGradients gradients;
};

DType ParameterDType(const Tensor& gamma, const Tensor& x) {
  return gamma.defined() ? gamma.dtype() : ComputeDType(x);
}

}  // namespace

ops::BatchNormResult BatchNormTrain(const Tensor& x, const Tensor& gamma,
                                    const Tensor& beta, const Tensor& residual,
                                    const Tensor& running_mean,
                                    const Tensor& running_variance,
                                    const ops::BatchNormOptions& options,
                                    const Tensor& batches) {
  const double count =
      static_cast<double>(x.numel()) / static_cast<double>(x.dim(1));
  const DType dtype = ComputeDType(x);
  const MemoryFormat format = NormFormat(x);
  const Tensor dense = Big(x, format, dtype);
  Statistics statistics = BatchStatistics(dense, count);
  const Affine affine(statistics, gamma, beta, options.eps);
  ops::BatchNormResult result;
  result.mean = FromDoubles(statistics.mean, dtype);
  result.inverse_stddev = FromDoubles(affine.inverse_stddev, dtype);
  result.scale = FromDoubles(affine.scale, dtype);
  result.shift = FromDoubles(affine.shift, dtype);
  result.y = NormApply(dense, Big(residual, format, dtype), result.scale,
                       result.shift, options.relu)
                 .To(x.dtype());
  Track(running_mean, statistics.mean, options.momentum);
  const double unbiased = count / (count - 1.0);
  for (double& variance : statistics.variance) variance *= unbiased;
  Track(running_variance, statistics.variance, options.momentum);
  if (batches.defined()) {
    ++*batches.data<int64_t>();
    batches.BumpVersion();
  }
  return result;
}

Tensor BatchMoments(const Tensor& x) {
  const DType dtype = ComputeDType(x);
  const int64_t channels = x.dim(1);
  const Tensor moments = Tensor::Zeros({3, channels}, {.dtype = dtype});
  if (x.numel() == 0) return moments;
  const auto count = static_cast<double>(x.numel() / channels);
  const Statistics statistics =
      BatchStatistics(Big(x, NormFormat(x), dtype), count);
  moments.Select(0, 0).Fill(count);
  moments.Select(0, 1).CopyFrom(Tensor::From(statistics.mean));
  moments.Select(0, 2).CopyFrom(Tensor::From(statistics.variance));
  return moments;
}

// The batches' sums of squares are around their own means; the joined ones are
// around the mean of all values.
Tensor JoinMoments(const Tensor& batches) {
  const auto channels = static_cast<size_t>(batches.dim(2));
  const auto members = static_cast<size_t>(batches.dim(0));
  const std::vector<double> all = batches.To(DType::kF64).ToVector<double>();
  std::vector<double> joined(4 * channels);
  for (size_t c = 0; c < channels; ++c) {
    const auto of = [&](size_t member, size_t row) {
      return all[(3 * member + row) * channels + c];
    };
    double count = 0, mean = 0, squares = 0;
    for (size_t i = 0; i < members; ++i) {
      count += of(i, 0);
      mean += of(i, 0) * of(i, 1);
    }
    mean /= count;
    for (size_t i = 0; i < members; ++i) {
      const double off = of(i, 1) - mean;
      squares += of(i, 0) * (of(i, 2) + off * off);
    }
    joined[c] = mean;
    joined[channels + c] = squares / (count - 1);
    joined[2 * channels + c] = squares / count;
    joined[3 * channels + c] = count;
  }
  return Tensor::From(joined, {4, batches.dim(2)}).To(batches.dtype());
}

void UpdateRunningStatistics(const std::vector<ops::RunningUpdate>& updates) {
  for (const ops::RunningUpdate& update : updates) {
    for (const Tensor& batch : update.batches) {
      const Tensor wide = batch.To(DType::kF64);
      Track(update.mean, wide.Select(0, 0).ToVector<double>(), update.momentum);
      Track(update.variance, wide.Select(0, 1).ToVector<double>(),
            update.momentum);
    }
    if (update.count.defined()) {
      *update.count.data<int64_t>() +=
          static_cast<int64_t>(update.batches.size());
    }
  }
}

Tensor BatchNormEval(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const Tensor& residual, const Tensor& running_mean,
                     const Tensor& running_variance,
                     const ops::BatchNormOptions& options) {
  const DType dtype = ComputeDType(x);
  const MemoryFormat format = NormFormat(x);
  const Affine affine(RunningStatistics(running_mean, running_variance), gamma,
                      beta, options.eps);
  return NormApply(Big(x, format, dtype), Big(residual, format, dtype),
                   FromDoubles(affine.scale, dtype),
                   FromDoubles(affine.shift, dtype), options.relu)
      .To(x.dtype());
}

ops::BatchNormGradients BatchNormBackward(
    const Tensor& dy, const Tensor& x, const Tensor& gamma,
    const ops::BatchNormResult& forward, bool has_residual,
    const ops::BatchNormOptions& options) {
  const bool from_input =
      !has_residual && forward.scale.defined() && forward.shift.defined();
  const std::vector<double> mean = PerChannel(forward.mean, x.dim(1), 0.0);
  const std::vector<double> inverse =
      PerChannel(forward.inverse_stddev, x.dim(1), 0.0);
  std::vector<double> scale = PerChannel(gamma, x.dim(1), 1.0);
  for (size_t c = 0; c < scale.size(); ++c) scale[c] *= inverse[c];
  const Tensor scale_tensor = forward.scale.defined()
                                  ? forward.scale
                                  : FromDoubles(scale, ComputeDType(x));
  const Tensor shift_tensor =
      forward.shift.defined() ? forward.shift : forward.mean;
  Backward backward(dy, x, from_input ? Tensor() : forward.y, scale_tensor,
                    shift_tensor, options.relu);
  backward.Sum(forward.mean, inverse, has_residual, ParameterDType(gamma, x));
  // dx = scale * (g - mean(g) - xhat * mean(g * xhat)), written as g * scale +
  // x * slope + offset.
  const int64_t per_channel = x.numel() / x.dim(1);
  const double count = static_cast<double>(per_channel);
  std::vector<double> slope(mean.size()), offset(mean.size());
  for (size_t c = 0; c < mean.size(); ++c) {
    const double second = backward.sums[mean.size() + c] / count;
    slope[c] = -scale[c] * inverse[c] * inverse[c] * second;
    offset[c] = -scale[c] * backward.sums[c] / count - slope[c] * mean[c];
  }
  backward.SetInputGradient(slope, offset);
  return backward.gradients;
}

ops::BatchNormGradients BatchNormEvalBackward(
    const Tensor& dy, const Tensor& x, const Tensor& y, const Tensor& gamma,
    const Tensor& running_mean, const Tensor& running_variance,
    bool has_residual, const ops::BatchNormOptions& options) {
  const DType dtype = ComputeDType(x);
  const Statistics statistics =
      RunningStatistics(running_mean, running_variance);
  const Affine affine(statistics, gamma, Tensor(), options.eps);
  Backward backward(dy, x, options.relu ? y : Tensor(),
                    FromDoubles(affine.scale, dtype),
                    FromDoubles(affine.shift, dtype), options.relu);
  backward.Sum(FromDoubles(statistics.mean, dtype), affine.inverse_stddev,
               has_residual, ParameterDType(gamma, x));
  const std::vector<double> zeros(statistics.mean.size(), 0.0);
  backward.SetInputGradient(zeros, zeros);
  return backward.gradients;
}

}  // namespace baton::cpu
