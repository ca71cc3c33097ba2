// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "autograd/variable.h"
#include "core/tensor.h"
#include "models/nn/module.h"

namespace baton::nn {

// A loss that is more than a function (models/nn/loss.h): one of a user's own,
// which may have parameters to train, buffers and options. It overrides Loss,
// or LossOfAll where the model gives several outputs. Thread-compatible; both
// count as a write while training.
class LossModule : public Module {
 public:
  // Of outputs, f32 or of the model's dtype if that is no half, and targets
  // that are beside them: the mean over their rows, one element. So the losses
  // of parts of a batch add up, by their rows, to that of the whole. Throws
  // Error where they do not fit.
  virtual Variable Loss(const Variable& outputs, const Tensor& targets);
  // The same of all outputs of a model, those that are no floating numbers as
  // they are. Of a loss that overrides Loss: of the one; throws Error for
  // another number.
  virtual Variable LossOfAll(const std::vector<Variable>& outputs,
                             const Tensor& targets);

  // A loss is nothing without targets: throws Error.
  Variable Forward(const Variable& outputs) final;

 protected:
  // In full, as are the outputs that it takes.
  bool KeepsPrecision() const override { return true; }
};

// A model, and beside it the loss that takes its outputs: its forward is the
// model's, and what is said to it, such as To and Train, both are told. The
// children are "module" and "loss". Thread-compatible.
class WithLoss final : public Module {
 public:
  // The loss stays where it is.
  WithLoss(std::shared_ptr<Module> module, std::shared_ptr<LossModule> loss);
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override;

 private:
  Module& module_;
};

}  // namespace baton::nn
