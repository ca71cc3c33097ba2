// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "autograd/node.h"

// How autograd/functions/*.cc write an op on one screen: compute forward, then
// Record it with what the gradients need. Errors of formulas throw.
namespace baton::autograd {

using Tensors = std::vector<Tensor>;

// What a gradient formula sees. Confined to the formula's call.
class Backprop {
 public:
  Backprop(const char* op, const Node& node, const Tensors& grads,
           const std::vector<SavedTensor>& saved)
      : op_(op), node_(node), grads_(grads), saved_(saved) {}

  // The gradient of the op's output; undefined only in RecordMany, where the
  // output was not used.
  const Tensor& dy(size_t output = 0) const { return grads_[output]; }
  // Throws when saved tensor i was written in place, or freed, since.
  const Tensor& saved(size_t i) const { return saved_[i].Get(op_); }
  bool needs(int input) const { return node_.needs(input); }

 private:
  const char* op_;
  const Node& node_;
  const Tensors& grads_;
  const std::vector<SavedTensor>& saved_;
};

using Formula = std::function<Tensor(const Backprop&)>;
using JointFormula = std::function<Tensors(const Backprop&)>;

// An input of an op and the gradient with respect to it. The formula runs only
// when the input requires grad and a gradient came.
struct Input {
  const Variable& value;
  Formula gradient;
};

// `y` as a Variable which remembers, unless NoGrad is in force or no input
// requires grad, how gradients flow back.
Variable Record(const char* op, Tensor y, Tensors saved,
                std::initializer_list<Input> inputs);
// For ops that compute the gradients of all inputs at once.
Variable RecordJoint(const char* op, Tensor y, Tensors saved,
                     const std::vector<Variable>& inputs, JointFormula formula);
// For ops of several outputs.
std::vector<Variable> RecordMany(const char* op, const Tensors& outputs,
                                 Tensors saved,
                                 const std::vector<Variable>& inputs,
                                 JointFormula formula);

}  // namespace baton::autograd
