// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/batch_norm.h"

#include <optional>

#include "core/cuda/batch_norm_kernels.h"

namespace baton::cuda {
namespace {

DType ComputeDType(const Tensor& x) {
  return x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
}

// Returns the tensor as kernels read it: dense in x's order.
Tensor Dense(const Tensor& tensor, const Tensor& x) {
  return tensor.defined() ? tensor.Contiguous(NormFormat(x)) : tensor;
}
Tensor PerChannel(const Tensor& tensor, const Tensor& x) {
  return tensor.defined() ? tensor.To(ComputeDType(x)).Contiguous() : tensor;
}
Tensor EmptyPerChannel(const Tensor& x) {
  return Tensor::Empty({x.dim(1)},
                       {.dtype = ComputeDType(x), .device = x.device()});
}
Tensor EmptyLikeDense(const Tensor& x) {
  return Tensor::Empty(
      x.shape(),
      {.dtype = x.dtype(), .device = x.device(), .format = NormFormat(x)});
}

// Running statistics that kernels write, even if the tensor is a view or has
// another dtype.
class Tracked {
 public:
  Tracked(const Tensor& running, const Tensor& x)
      : running_(running), written_(PerChannel(running, x)) {}
  const Tensor& written() const { return written_; }
  void Finish() const {
    if (!running_.defined()) return;
    if (written_.raw_data() == running_.raw_data()) {
      running_.BumpVersion();
    } else {
      running_.CopyFrom(written_);
    }
  }

 private:
  const Tensor running_, written_;
};

// Returns how many blocks of ApplyKernel run at once.
int ApplyBlocks(const Launch& launch) { return 2 * launch.multiprocessors(); }

void RunForward(const NormForward& args) {
  const Launch launch(
      "batch_norm",
      {&args.y, &args.mean, &args.inverse_stddev, &args.scale, &args.shift,
       &args.running_mean, &args.running_variance, &args.batches},
      {&args.x, &args.residual, &args.gamma, &args.beta});
  const NormView view("batch_norm", args.x, {&args.residual, &args.y});
  const int blocks = ClusteredBlocks(launch);
  if (const auto owners = OwnerGrid(view, blocks, 1)) {
    LaunchOwnerForward(launch, view, *owners, args);
    return;
  }
  const NormGrid sums = SumGrid(view, blocks);
  const Tensor partials = EmptyPartials(sums, args.x);
  {
    const Launch moments("batch_norm", {&partials}, {});
    LaunchMoments(moments, view, sums, args.x, partials);
  }
  const NormGrid pass = PassGrid(view, sums, ApplyBlocks(launch));
  LaunchApply(launch, view, pass, args, partials, sums.partials());
}

void RunEval(const NormForward& args) {
  const Launch launch("batch_norm", {&args.y},
                      {&args.x, &args.residual, &args.gamma, &args.beta,
                       &args.running_mean, &args.running_variance});
  const NormView view("batch_norm", args.x, {&args.residual, &args.y});
  const NormGrid sums = SumGrid(view, ClusteredBlocks(launch));
  const NormGrid pass = PassGrid(view, sums, ApplyBlocks(launch));
  LaunchApply(launch, view, pass, args, Tensor(), 0);
}

void RunBackward(const NormBackward& args) {
  constexpr char kOp[] = "batch_norm_backward";
  const Launch launch(
      kOp, {&args.dx, &args.g, &args.dgamma, &args.dbeta},
      {&args.dy, &args.x, &args.y, &args.gamma, &args.mean,
       &args.inverse_stddev, &args.variance, &args.scale, &args.shift});
  const NormView view(kOp, args.x, {&args.dy, &args.y, &args.g, &args.dx});
  const int blocks = ClusteredBlocks(launch);
  if (const auto owners = OwnerGrid(view, blocks, 2)) {
    LaunchOwnerBackward(launch, view, *owners, args);
    return;
  }
  const NormGrid sums = SumGrid(view, blocks);
  const Tensor partials = EmptyPartials(sums, args.x);
  {
    const Launch gradients(kOp, {&partials}, {});
    LaunchGradientSums(gradients, view, sums, args, partials);
  }
  NormBackward masked = args;
  if (args.g.defined()) {
    masked.dy = args.g;
    masked.relu = false;
  }
  const NormGrid pass = PassGrid(view, sums, launch.multiprocessors());
  LaunchInputGradient(launch, view, pass, masked, partials, sums.partials());
}

// The part that both backwards share. `args` has what the forward computed.
ops::BatchNormGradients Gradients(NormBackward args, const Tensor& dy,
                                  const Tensor& x, const Tensor& gamma,
                                  bool has_residual) {
  args.dy = Dense(dy, x);
  args.x = Dense(x, x);
  args.y = Dense(args.y, x);
  args.gamma = PerChannel(gamma, x);
  args.dx = EmptyLikeDense(x);
  if (has_residual && args.relu) args.g = EmptyLikeDense(x);
  const DType dtype = gamma.defined() ? gamma.dtype() : ComputeDType(x);
  ops::BatchNormGradients result;
  result.dx = args.dx;
  if (has_residual) result.dresidual = args.relu ? args.g : args.dy;
  if (x.numel() == 0) {
    result.dgamma =
        Tensor::Zeros({x.dim(1)}, {.dtype = dtype, .device = x.device()});
    result.dbeta = Tensor::ZerosLike(result.dgamma);
    return result;
  }
  args.dgamma = EmptyPerChannel(x);
  args.dbeta = EmptyPerChannel(x);
  args.inverse_count =
      static_cast<double>(x.dim(1)) / static_cast<double>(x.numel());
  RunBackward(args);
  result.dgamma = args.dgamma.To(dtype);
  result.dbeta = args.dbeta.To(dtype);
  return result;
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
  const Tracked mean(running_mean, x), variance(running_variance, x);
  const NormForward args = {.x = Dense(x, x),
                            .residual = Dense(residual, x),
                            .y = EmptyLikeDense(x),
                            .gamma = PerChannel(gamma, x),
                            .beta = PerChannel(beta, x),
                            .running_mean = mean.written(),
                            .running_variance = variance.written(),
                            .batches = batches,
                            .mean = EmptyPerChannel(x),
                            .inverse_stddev = EmptyPerChannel(x),
                            .scale = EmptyPerChannel(x),
                            .shift = EmptyPerChannel(x),
                            .relu = options.relu,
                            .inverse_count = 1.0 / count,
                            .unbias = count / (count - 1.0),
                            .eps = options.eps,
                            .momentum = options.momentum};
  RunForward(args);
  mean.Finish();
  variance.Finish();
  if (batches.defined()) batches.BumpVersion();
  return {args.y, args.mean, args.inverse_stddev, args.scale, args.shift};
}

Tensor BatchMoments(const Tensor& x) {
  constexpr char kOp[] = "batch_moments";
  const Tensor moments = Tensor::Empty(
      {3, x.dim(1)}, {.dtype = ComputeDType(x), .device = x.device()});
  if (x.numel() == 0) return moments.Fill(0);
  const Tensor dense = Dense(x, x);
  const Launch launch(kOp, {&moments}, {&dense});
  const NormView view(kOp, dense, {});
  const NormGrid sums = SumGrid(view, ClusteredBlocks(launch));
  const Tensor partials = EmptyPartials(sums, dense);
  {
    const Launch writes(kOp, {&partials}, {});
    LaunchMoments(writes, view, sums, dense, partials);
  }
  LaunchFinishMoments(launch, view, sums, dense, partials, moments);
  return moments;
}

Tensor BatchNormEval(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const Tensor& residual, const Tensor& running_mean,
                     const Tensor& running_variance,
                     const ops::BatchNormOptions& options) {
  const NormForward args = {.x = Dense(x, x),
                            .residual = Dense(residual, x),
                            .y = EmptyLikeDense(x),
                            .gamma = PerChannel(gamma, x),
                            .beta = PerChannel(beta, x),
                            .running_mean = PerChannel(running_mean, x),
                            .running_variance = PerChannel(running_variance, x),
                            .relu = options.relu,
                            .eps = options.eps};
  if (x.numel() > 0) RunEval(args);
  return args.y;
}

ops::BatchNormGradients BatchNormBackward(
    const Tensor& dy, const Tensor& x, const Tensor& gamma,
    const ops::BatchNormResult& forward, bool has_residual,
    const ops::BatchNormOptions& options) {
  const bool from_x =
      !has_residual && forward.scale.defined() && forward.shift.defined();
  NormBackward args = {.mean = PerChannel(forward.mean, x),
                       .inverse_stddev = PerChannel(forward.inverse_stddev, x),
                       .relu = options.relu};
  if (from_x) {
    args.scale = PerChannel(forward.scale, x);
    args.shift = PerChannel(forward.shift, x);
  } else if (options.relu) {
    args.y = forward.y;
  }
  return Gradients(args, dy, x, gamma, has_residual);
}

ops::BatchNormGradients BatchNormEvalBackward(
    const Tensor& dy, const Tensor& x, const Tensor& y, const Tensor& gamma,
    const Tensor& running_mean, const Tensor& running_variance,
    bool has_residual, const ops::BatchNormOptions& options) {
  const NormBackward args = {.y = options.relu ? y : Tensor(),
                             .mean = PerChannel(running_mean, x),
                             .variance = PerChannel(running_variance, x),
                             .relu = options.relu,
                             .eps = options.eps,
                             .through_statistics = false};
  return Gradients(args, dy, x, gamma, has_residual);
}

}  // namespace baton::cuda
