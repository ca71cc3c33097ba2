// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>

#include "autograd/functions/loss.h"
#include "models/nn/loss_module.h"

// PyTorch's loss modules, with its names and defaults. They call the functions
// of autograd/functions/loss.h. The loss of a pipeline must have the reduction
// to a mean. Thread-compatible.
namespace baton::nn {

// The base of element-wise losses, which have options and no tensors.
class ElementLoss : public LossModule {
 public:
  Variable Loss(const Variable& outputs, const Tensor& targets) final;

 protected:
  using Function = std::function<Variable(const Variable&, const Variable&)>;
  explicit ElementLoss(Function function);

 private:
  const Function function_;
};

class L1Loss final : public ElementLoss {
 public:
  explicit L1Loss(Reduction reduction = Reduction::kMean);
};

class MSELoss final : public ElementLoss {
 public:
  explicit MSELoss(Reduction reduction = Reduction::kMean);
};

class SmoothL1Loss final : public ElementLoss {
 public:
  explicit SmoothL1Loss(double beta = 1,
                        Reduction reduction = Reduction::kMean);
};

class HuberLoss final : public ElementLoss {
 public:
  explicit HuberLoss(double delta = 1, Reduction reduction = Reduction::kMean);
};

class KLDivLoss final : public ElementLoss {
 public:
  explicit KLDivLoss(bool log_target = false,
                     Reduction reduction = Reduction::kMean);
};

// The base of losses with weights. Weights that are defined become buffers.
class WeightedLoss : public LossModule {
 protected:
  // Registers the weight as a buffer; returns null if it is undefined.
  const Tensor* Keep(const char* name, const Tensor& weight);
  // Returns the weight in the dtype that outputs of `dtype` need; undefined if
  // `kept` is null.
  static Tensor WeightAs(const Tensor* kept, DType dtype);
};

// Buffer "weight".
class BCELoss final : public WeightedLoss {
 public:
  explicit BCELoss(const autograd::BinaryLossOptions& options = {});
  Variable Loss(const Variable& outputs, const Tensor& targets) override;

 private:
  const Reduction reduction_;
  const Tensor* const weight_;
};

// Buffers "weight" and "pos_weight".
class BCEWithLogitsLoss final : public WeightedLoss {
 public:
  explicit BCEWithLogitsLoss(const autograd::BinaryLossOptions& options = {});
  Variable Loss(const Variable& outputs, const Tensor& targets) override;

 private:
  const Reduction reduction_;
  const Tensor* const weight_;
  const Tensor* const pos_weight_;
};

// The base of losses over classes, which lie along `class_axis`. The default is
// the last axis, where PyTorch uses axis 1. Buffer "weight".
class ClassLoss : public WeightedLoss {
 protected:
  ClassLoss(const ClassLossOptions& options, int class_axis);
  ClassLossOptions OptionsFor(const Variable& outputs) const;
  int class_axis() const { return class_axis_; }

 private:
  const ClassLossOptions options_;
  const int class_axis_;
  const Tensor* const weight_;
};

// Takes log-probabilities.
class NLLLoss final : public ClassLoss {
 public:
  explicit NLLLoss(const ClassLossOptions& options = {}, int class_axis = -1);
  Variable Loss(const Variable& outputs, const Tensor& targets) override;
};

// Takes logits; targets are labels or class probabilities.
class CrossEntropyLoss final : public ClassLoss {
 public:
  explicit CrossEntropyLoss(const ClassLossOptions& options = {},
                            int class_axis = -1);
  Variable Loss(const Variable& outputs, const Tensor& targets) override;
};

}  // namespace baton::nn
