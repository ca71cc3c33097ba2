// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "autograd/node.h"

// How autograd/functions/*.cc write an op on one screen: compute forward, then
// Record it with what the gradients need. Errors of formulas throw.
namespace baton::autograd {

using Tensors = std::vector<Tensor>;

// What a gradient formula sees. Confined to the formula's call.
class Backprop {
 public:
  // `wanted`: the inputs to compute gradients of now; empty: all.
  Backprop(const char* op, const Node& node, const Tensors& grads,
           const std::vector<SavedTensor>& saved, std::vector<bool> wanted = {})
      : op_(op),
        node_(node),
        grads_(grads),
        saved_(saved),
        wanted_(std::move(wanted)) {}

  // The gradient of the op's output; undefined only in RecordMany, where the
  // output was not used.
  const Tensor& dy(size_t output = 0) const { return grads_[output]; }
  // Throws when saved tensor i was written in place, or freed, since.
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
// Adds the gradient to `sum`, of its shape, dtype and device.
using AddingFormula = std::function<void(const Backprop&, const Tensor& sum)>;

// An input of an op and the gradient with respect to it. The formulas run only
// when the input requires grad and a gradient came.
struct Input {
  const Variable& value;
  Formula gradient;
  AddingFormula add_gradient = nullptr;  // where that is cheaper than a sum
  RowsFormula rows = nullptr;            // in place of a leaf's gradient
};

// `y` as a Variable which remembers, unless NoGrad is in force or no input
// requires grad, how gradients flow back.
Variable Record(const char* op, Tensor y, Tensors saved,
                std::initializer_list<Input> inputs);
// For ops that compute the gradients of all inputs at once. With kApart the
// formula heeds needs(), and may be asked for some of them now and for others
// later.
enum class GradientParts { kTogether, kApart };
Variable RecordJoint(const char* op, Tensor y, Tensors saved,
                     const std::vector<Variable>& inputs, JointFormula formula,
                     GradientParts parts = GradientParts::kTogether);
// For ops of several outputs.
std::vector<Variable> RecordMany(
    const char* op, const Tensors& outputs, Tensors saved,
    const std::vector<Variable>& inputs, JointFormula formula,
    GradientParts parts = GradientParts::kTogether);

}  // namespace baton::autograd
