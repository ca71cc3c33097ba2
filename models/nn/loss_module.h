// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/tensor.h"
#include "models/nn/module.h"

namespace baton::nn {

// A loss that is more than a function (models/nn/loss.h): one of a user's own,
// which may have parameters to train, buffers and options. Thread-compatible;
// Loss counts as a write while training.
class LossModule : public Module {
 public:
  // Of outputs, f32 or of the model's dtype if that is no half, and targets
  // that are beside them: the mean over their rows, one element. So the losses
  // of parts of a batch add up, by their rows, to that of the whole. Throws
  // Error where they do not fit.
  virtual Variable Loss(const Variable& outputs, const Tensor& targets) = 0;

  // A loss is nothing without targets: throws Error.
  Variable Forward(const Variable& outputs) final;

 protected:
  // In full, as are the outputs that it takes.
  bool KeepsPrecision() const override { return true; }
};

}  // namespace baton::nn
