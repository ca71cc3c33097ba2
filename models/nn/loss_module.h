// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "autograd/variable.h"
#include "core/tensor.h"
#include "models/nn/module.h"

namespace baton::nn {

// The base of losses that are modules, such as a user's own, which may have
// trained parameters, buffers and options. (Losses that are functions are in
// models/nn/loss.h.) A loss overrides Loss, or LossOfAll if the model returns
// several outputs. Thread-compatible; while training both count as a write.
class LossModule : public Module {
 public:
  // Returns the mean loss over the rows, one element. Outputs are f32, or of
  // the model's dtype unless that is a half type; targets are on the same
  // device. The loss of a batch must be the mean of its parts' losses, weighted
  // by their rows. Throws Error if outputs and targets do not match.
  virtual Variable Loss(const Variable& outputs, const Tensor& targets);
  // The same for all outputs of a model; outputs that are not floating keep
  // their dtype. The default calls Loss for a single output, and throws Error
  // for any other number.
  virtual Variable LossOfAll(const std::vector<Variable>& outputs,
                             const Tensor& targets);

  // Throws Error: a loss needs targets.
  Variable Forward(const Variable& outputs) final;

 protected:
  // Losses keep full precision, as do the outputs that they take.
  bool KeepsPrecision() const override { return true; }
};

// A model together with the loss that takes its outputs. Its forward is the
// model's; calls such as To and Train apply to both. The children are named
// "module" and "loss". Thread-compatible.
class WithLoss final : public Module {
 public:
  // Does not move the loss to another device.
  WithLoss(std::shared_ptr<Module> module, std::shared_ptr<LossModule> loss);
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override;

 private:
  Module& module_;
};

}  // namespace baton::nn
