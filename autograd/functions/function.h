// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "autograd/node.h"

// Helpers to write the ops in autograd/functions/*.cc: an op computes its
// forward, then calls Record with what its gradients need. Gradient formulas
// throw their errors.
namespace baton::autograd {

using Tensors = std::vector<Tensor>;

// The arguments of a gradient formula. Valid only during the formula's call.
class Backprop {
 public:
  // `wanted` selects the inputs whose gradients are to be computed now; empty:
  // all.
  Backprop(const char* op, const Node& node, const Tensors& grads,
           const std::vector<SavedTensor>& saved, std::vector<bool> wanted = {})
      : op_(op),
        node_(node),
        grads_(grads),
        saved_(saved),
        wanted_(std::move(wanted)) {}

  // The gradient of the op's output; undefined only for an output of RecordMany
  // that was not used.
  const Tensor& dy(size_t output = 0) const { return grads_[output]; }
  // Throws Error if saved tensor i was written in place, or freed, since it was
  // saved.
  const Tensor& saved(size_t i) const { return saved_[i].Get(op_); }
  bool needs(int input) const {
    return node_.needs(input) &&
           (wanted_.empty() || wanted_[static_cast<size_t>(input)]);
  }

 private:
  const char* op_;
  const Node& node_;
  const Tensors& grads_;
  const std::vector<SavedTensor>& saved_;
  const std::vector<bool> wanted_;
};

using Formula = std::function<Tensor(const Backprop&)>;
using RowsFormula = std::function<Gradient(const Backprop&)>;
using JointFormula = std::function<Tensors(const Backprop&)>;
// Adds the gradient to `sum`, which has its shape, dtype and device.
using AddingFormula = std::function<void(const Backprop&, const Tensor& sum)>;

// An input of an op and the gradient with respect to it. The formulas run only
// if the input requires grad and the output has a gradient.
struct Input {
  const Variable& value;
  Formula gradient;
  AddingFormula add_gradient = nullptr;  // set if cheaper than a sum
  RowsFormula rows = nullptr;            // used for a leaf instead
};

// Returns `y` as a Variable that has a backward node, unless NoGrad is active
// or no input requires grad.
Variable Record(const char* op, Tensor y, Tensors saved,
                std::initializer_list<Input> inputs);
// Like Record, for ops that compute the gradients of all inputs at once. With
// kApart the formula computes only the gradients that needs() selects; it may
// be called again for the others.
enum class GradientParts { kTogether, kApart };
Variable RecordJoint(const char* op, Tensor y, Tensors saved,
                     const std::vector<Variable>& inputs, JointFormula formula,
                     GradientParts parts = GradientParts::kTogether);
// Like RecordJoint, for ops with several outputs.
std::vector<Variable> RecordMany(
    const char* op, const Tensors& outputs, Tensors saved,
    const std::vector<Variable>& inputs, JointFormula formula,
    GradientParts parts = GradientParts::kTogether);

}  // namespace baton::autograd
