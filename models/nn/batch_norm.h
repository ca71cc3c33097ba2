// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <utility>

#include "autograd/functions/norm.h"
#include "models/nn/module.h"

namespace baton::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // weight of a batch in the running statistics
};

// Normalizes x [N, C, H, W] per channel: while training by the batch's
// statistics, which also update the running ones; in eval mode by the running
// statistics. Parameters "weight" and "bias" [C]; buffers "running_mean",
// "running_var" [C] and "num_batches_tracked" (i64, []). Thread-compatible.
class BatchNorm2d final : public Module {
 public:
  explicit BatchNorm2d(int64_t channels, const BatchNormOptions& options = {});
  Variable Forward(const Variable& x) override;
  // These fuse what residual blocks do next into one kernel.
  Variable ForwardRelu(const Variable& x);  // relu(bn(x))
  // relu(bn(x) + residual)
  Variable ForwardAddRelu(const Variable& x, const Variable& residual);
  // From now on training uses the statistics of the batches of all `peers`
  // together; null: of this module's batch alone.
  void TrainTogether(std::shared_ptr<autograd::BatchPeers> peers) {
    peers_ = std::move(peers);
  }

  const Variable& weight() const { return weight_; }
  const Variable& bias() const { return bias_; }

 protected:
  bool KeepsPrecision() const override { return true; }

 private:
  Variable Run(const Variable& x, const Variable& residual, bool relu);
  // Normalizes by the batch's statistics, which also update the running ones.
  Variable ByBatch(const Variable& x, const Variable& residual,
                   const Tensor& running_mean, const Tensor& running_variance,
                   const ops::BatchNormOptions& options,
                   const Tensor& batches = Tensor());

  const BatchNormOptions options_;
  Variable& weight_;
  Variable& bias_;
  Tensor& running_mean_;
  Tensor& running_variance_;
  Tensor& batches_;
  std::shared_ptr<autograd::BatchPeers> peers_;  // null: none
};

}  // namespace baton::nn
