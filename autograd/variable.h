// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "autograd/gradient.h"
#include "autograd/hooks.h"
#include "core/tensor.h"

namespace baton {

namespace autograd {
class Accumulator;
class Node;
struct VariableState;

// The position of a value in the graph: output `index` of `node`.
struct Edge {
  std::shared_ptr<Node> node;
  int index = 0;
  bool valid() const { return node != nullptr; }
};
}  // namespace autograd

// A tensor with its position in the recorded graph. Handle: copies share
// tensor, gradient and graph. Ops on Variables (autograd/functions/) record the
// graph unless NoGrad is active. Thread-compatible; several threads may
// accumulate a leaf's gradient.
class Variable {
 public:
  Variable() = default;  // undefined
  // Makes a leaf. Implicit, so that plain tensors can be passed as Variables.
  Variable(Tensor tensor);  // NOLINT(google-explicit-constructor)
  Variable(Tensor tensor, bool requires_grad);
  // Makes the result of an op; for autograd/functions and engines.
  Variable(Tensor tensor, autograd::Edge gradient_edge);

  bool defined() const { return state_ != nullptr; }
  const Tensor& tensor() const;  // undefined if this is
  // Replaces a leaf's tensor by another one of the same shape, for all handles,
  // and drops the gradient; earlier graphs keep the old tensor. Throws unless
  // this is a leaf and, if it requires grad, floating.
  void set_tensor(Tensor tensor);
  const Shape& shape() const { return tensor().shape(); }
  DType dtype() const { return tensor().dtype(); }
  int64_t dim(int axis) const { return tensor().dim(axis); }

  bool requires_grad() const;
  bool is_leaf() const;
  // Leaves of floating dtype only; throws otherwise.
  void set_requires_grad(bool requires_grad);

  // Undefined before the first Backward. If the gradient is rows, returns a
  // dense copy; gradient() returns it as it is.
  Tensor grad() const { return gradient().Dense(); }
  Gradient gradient() const;
  void set_grad(Gradient grad);
  void ZeroGrad();  // back to undefined
  // Adds to grad. The first `grad` is stored without a copy; later ones are
  // added in place unless the old grad is shared, in which case it stays
  // unchanged. Sums of several bf16 or f16 gradients are f32. Throws unless
  // shape, device and dtype are the leaf's; f32 also fits bf16 and f16.
  void AccumulateGrad(const Gradient& grad);

  // Returns where gradients of this value flow to: the op that made it, or, for
  // a leaf that requires grad, its accumulator. Invalid if the value does not
  // require grad.
  autograd::Edge gradient_edge() const;

  // Returns the same tensor without history.
  Variable Detach() const;
  // `hook` sees the gradient of this value when it is complete and may return a
  // replacement (an undefined tensor leaves it). Hooks run in order of
  // addition, and what one throws ends the pass, led by "hook NAME: ". Throws
  // unless the value requires grad.
  autograd::HookHandle AddHook(std::function<Tensor(const Tensor&)> hook,
                               const std::string& name = "");

  // Identifies the shared state; equal for copies of one handle.
  const void* id() const { return state_.get(); }

  // Back-propagates from this value, adding to the leaves' grad. Without
  // `gradient` the value must have one element. Frees the graph unless
  // `retain_graph`. Throws Error.
  void Backward(const Tensor& gradient = Tensor(),
                bool retain_graph = false) const;

 private:
  friend class autograd::Accumulator;
  std::shared_ptr<autograd::VariableState> state_;
};

// While the scope lives, the calling thread records no graph.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  static bool Active();

 private:
  const bool before_;
};

}  // namespace baton
