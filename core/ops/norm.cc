// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/norm.h"

#include <map>
#include <string>

#include "core/cpu/batch_norm.h"
#include "core/cuda/batch_norm.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

void CheckChannels(const char* op, const char* name, const Tensor& tensor,
                   const Tensor& x) {
  if (!tensor.defined()) return;
  RequireOneDevice(op, x, tensor);
  Require(tensor.shape() == Shape({x.dim(1)}), op, "expected ", name, " [",
          x.dim(1), "] for x ", x.shape().ToString(), ", got ",
          tensor.shape().ToString());
}

void CheckLike(const char* op, const char* name, const Tensor& tensor,
               const Tensor& x) {
  if (!tensor.defined()) return;
  RequireOneDevice(op, x, tensor);
  Require(tensor.shape() == x.shape() && tensor.dtype() == x.dtype(), op,
          "expected ", name, " like x, ", Name(x.dtype()), x.shape().ToString(),
          ", got ", Name(tensor.dtype()), tensor.shape().ToString());
}

void CheckInput(const char* op, const Tensor& x) {
  RequireOneDevice(op, x);
  Require(IsFloating(x.dtype()), op, "expected a floating x, got ",
          Name(x.dtype()));
  Require(x.rank() >= 2, op, "expected x [N, C, ...], got ",
          x.shape().ToString());
}

void CheckRunning(const char* op, const Tensor& x, const Tensor& mean,
                  const Tensor& variance) {
  Require(mean.defined() && variance.defined(), op,
          "expected running statistics");
  CheckChannels(op, "running mean", mean, x);
  CheckChannels(op, "running variance", variance, x);
}

constexpr char kBackward[] = "batch_norm_backward";

void CheckBackward(const Tensor& dy, const Tensor& x, const Tensor& y,
                   const Tensor& gamma, bool needs_y) {
  CheckInput(kBackward, x);
  Require(dy.defined(), kBackward, "dy is undefined");
  CheckLike(kBackward, "dy", dy, x);
  CheckLike(kBackward, "y", y, x);
  CheckChannels(kBackward, "gamma", gamma, x);
  Require(!needs_y || y.defined(), kBackward,
          "the ReLU's mask needs the forward's y");
}

}  // namespace

BatchNormResult BatchNormTrain(const Tensor& x, const Tensor& gamma,
                               const Tensor& beta, const Tensor& residual,
                               const Tensor& running_mean,
                               const Tensor& running_variance,
                               const BatchNormOptions& options,
                               const Tensor& batches) {
  constexpr char kOp[] = "batch_norm";
  CheckInput(kOp, x);
  if (batches.defined()) {
    RequireOneDevice(kOp, x, batches);
    Require(batches.dtype() == DType::kI64 && batches.numel() == 1, kOp,
            "expected the count of batches i64[], got ", batches.ToString());
  }
  CheckChannels(kOp, "gamma", gamma, x);
  CheckChannels(kOp, "beta", beta, x);
  CheckChannels(kOp, "running mean", running_mean, x);
  CheckChannels(kOp, "running variance", running_variance, x);
  CheckLike(kOp, "residual", residual, x);
  const int64_t count = x.dim(1) == 0 ? 0 : x.numel() / x.dim(1);
  Require(count > 1, kOp,
          "expected more than one value a channel to train on, got x ",
          x.shape().ToString());
  for (const Tensor* written : {&running_mean, &running_variance, &batches}) {
    if (written->defined()) written->PrepareWrite();
  }
  return KernelFor(x, cpu::BatchNormTrain, cuda::BatchNormTrain)(
      x, gamma, beta, residual, running_mean, running_variance, options,
      batches);
}

Tensor BatchMoments(const Tensor& x) {
  CheckInput("batch_moments", x);
  return KernelFor(x, cpu::BatchMoments, cuda::BatchMoments)(x);
}

Tensor JoinMoments(const Tensor& batches) {
  constexpr char kOp[] = "join_moments";
  RequireOneDevice(kOp, batches);
  Require(
      batches.rank() == 3 && batches.dim(1) == 3 &&
          (batches.dtype() == DType::kF32 || batches.dtype() == DType::kF64),
      kOp, "expected f32 or f64 [batches, 3, C], got ", batches.ToString());
  return KernelFor(batches, cpu::JoinMoments,
                   cuda::JoinMoments)(batches.Contiguous());
}

void UpdateRunningStatistics(const std::vector<RunningUpdate>& updates) {
  constexpr char kOp[] = "running_statistics";
  std::map<std::string, std::vector<RunningUpdate>> by_device;
  for (const RunningUpdate& update : updates) {
    const int64_t channels = update.mean.numel();
    const auto check = [&](const Tensor& x, const Shape& shape) {
      RequireOneDevice(kOp, update.mean, x);
      const bool f64 = x.device().is_cpu() && x.dtype() == DType::kF64;
      Require((f64 || x.dtype() == DType::kF32) && x.shape() == shape &&
                  x.IsContiguous(),
              kOp, "expected f32", shape.ToString(), ", got ", x.ToString());
    };
    check(update.mean, {channels});
    check(update.variance, {channels});
    for (const Tensor& batch : update.batches) check(batch, {2, channels});
    if (update.count.defined()) {
      RequireOneDevice(kOp, update.mean, update.count);
      Require(update.count.numel() == 1 && update.count.dtype() == DType::kI64,
              kOp, "expected a count i64 [], got ", update.count.ToString());
    }
    for (const Tensor* x : {&update.mean, &update.variance, &update.count}) {
      if (x->defined()) x->PrepareWrite();
    }
    by_device[update.mean.device().ToString()].push_back(update);
  }
  for (const auto& [device, group] : by_device) {
    KernelFor(group.front().mean, cpu::UpdateRunningStatistics,
              cuda::UpdateRunningStatistics)(group);
  }
  for (const RunningUpdate& update : updates) {
    for (const Tensor* x : {&update.mean, &update.variance, &update.count}) {
      if (x->defined()) x->BumpVersion();
    }
  }
}

Tensor BatchNormEval(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const Tensor& residual, const Tensor& running_mean,
                     const Tensor& running_variance,
                     const BatchNormOptions& options) {
  constexpr char kOp[] = "batch_norm";
  CheckInput(kOp, x);
  CheckChannels(kOp, "gamma", gamma, x);
  CheckChannels(kOp, "beta", beta, x);
  CheckRunning(kOp, x, running_mean, running_variance);
  CheckLike(kOp, "residual", residual, x);
  return KernelFor(x, cpu::BatchNormEval, cuda::BatchNormEval)(
      x, gamma, beta, residual, running_mean, running_variance, options);
}

BatchNormGradients BatchNormBackward(const Tensor& dy, const Tensor& x,
                                     const Tensor& gamma,
                                     const BatchNormResult& forward,
                                     bool has_residual,
                                     const BatchNormOptions& options) {
  const bool from_input =
      !has_residual && forward.scale.defined() && forward.shift.defined();
  CheckBackward(dy, x, forward.y, gamma, options.relu && !from_input);
  for (const Tensor* kept : {&forward.mean, &forward.inverse_stddev}) {
    Require(kept->defined(), kBackward, "expected the forward's statistics");
    CheckChannels(kBackward, "the forward's statistics", *kept, x);
  }
  return KernelFor(x, cpu::BatchNormBackward, cuda::BatchNormBackward)(
      dy, x, gamma, forward, has_residual, options);
}

BatchNormGradients BatchNormEvalBackward(const Tensor& dy, const Tensor& x,
                                         const Tensor& y, const Tensor& gamma,
                                         const Tensor& running_mean,
                                         const Tensor& running_variance,
                                         bool has_residual,
                                         const BatchNormOptions& options) {
  CheckBackward(dy, x, y, gamma, options.relu);
  CheckRunning(kBackward, x, running_mean, running_variance);
  return KernelFor(x, cpu::BatchNormEvalBackward, cuda::BatchNormEvalBackward)(
      dy, x, y, gamma, running_mean, running_variance, has_residual, options);
}

}  // namespace baton::ops
