// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/variable.h"

#include <utility>

#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "autograd/node.h"
#include "core/mutex.h"

namespace baton {
namespace autograd {

struct VariableState {
  explicit VariableState(Tensor t) : tensor(std::move(t)) {}

  Tensor tensor;
  Edge made_by;                // invalid for leaves
  bool requires_grad = false;  // only used for leaves
  mutable Mutex mutex;
  Gradient grad ABSL_GUARDED_BY(mutex);
  // Made at the first use, because most leaves are plain inputs.
  std::shared_ptr<Accumulator> accumulator ABSL_GUARDED_BY(mutex);
};

}  // namespace autograd

namespace {

using autograd::VariableState;

void RequireDefined(const std::shared_ptr<VariableState>& state) {
  Require(state != nullptr, "variable", "the variable is undefined");
}

thread_local bool no_grad = false;

}  // namespace

Variable::Variable(Tensor tensor) : Variable(std::move(tensor), false) {}

Variable::Variable(Tensor tensor, bool requires_grad) {
  if (!tensor.defined()) return;
  state_ = std::make_shared<VariableState>(std::move(tensor));
  if (requires_grad) set_requires_grad(true);
}

Variable::Variable(Tensor tensor, autograd::Edge gradient_edge)
    : state_(std::make_shared<VariableState>(std::move(tensor))) {
  state_->made_by = std::move(gradient_edge);
}

const Tensor& Variable::tensor() const {
  static const Tensor undefined;
  return state_ == nullptr ? undefined : state_->tensor;
}

void Variable::set_tensor(Tensor tensor) {
  RequireDefined(state_);
  Require(is_leaf() && tensor.defined() && tensor.shape() == shape() &&
              (IsFloating(tensor.dtype()) || !requires_grad()),
          "set_tensor", tensor.ToString(), " cannot take the place of ",
          is_leaf() ? "" : "the result ", state_->tensor.ToString());
  set_grad(Tensor());
  state_->tensor = std::move(tensor);
}

bool Variable::requires_grad() const {
  return state_ != nullptr &&
         (state_->requires_grad || state_->made_by.valid());
}

bool Variable::is_leaf() const {
  return state_ == nullptr || !state_->made_by.valid();
}

void Variable::set_requires_grad(bool requires_grad) {
  RequireDefined(state_);
  Require(is_leaf(), "set_requires_grad",
          "only leaves can be told; Detach() gives a leaf");
  Require(!requires_grad || IsFloating(dtype()), "set_requires_grad",
          "only floating tensors have gradients, this one is ", Name(dtype()));
  state_->requires_grad = requires_grad;
}

Gradient Variable::gradient() const {
  if (state_ == nullptr) return {};
  MutexLock lock(state_->mutex);
  return state_->grad;
}

void Variable::set_grad(Gradient grad) {
  RequireDefined(state_);
  MutexLock lock(state_->mutex);
  std::swap(state_->grad, grad);
}

void Variable::ZeroGrad() {
  if (state_ != nullptr) set_grad(Tensor());
}

void Variable::AccumulateGrad(const Gradient& grad) {
  RequireDefined(state_);
  const bool wide = IsHalf(dtype()) && grad.dtype() == DType::kF32;
  Require(grad.shape() == shape() && (wide || grad.dtype() == dtype()) &&
              grad.device() == tensor().device(),
          "accumulate", "a gradient ", Name(grad.dtype()),
          grad.shape().ToString(), " does not fit its leaf ", Name(dtype()),
          shape().ToString(), "; they are on ", grad.device().ToString(),
          " and ", tensor().device().ToString());
  MutexLock lock(state_->mutex);
  autograd::AddGradient(state_->grad,
                        grad.is_rows() ? grad : autograd::Dense(grad.values()));
}

autograd::Edge Variable::gradient_edge() const {
  if (!requires_grad()) return {};
  if (!is_leaf()) return state_->made_by;
  MutexLock lock(state_->mutex);
  if (state_->accumulator == nullptr) {
    state_->accumulator = std::make_shared<autograd::Accumulator>(state_);
  }
  return {state_->accumulator, 0};
}

Variable Variable::Detach() const { return Variable(tensor()); }

autograd::HookHandle Variable::AddHook(
    std::function<Tensor(const Tensor&)> hook, const std::string& name) {
  Require(requires_grad(), "add_hook", "the value does not require grad");
  const autograd::Edge edge = gradient_edge();
  return edge.node->AddHook(edge.index, std::move(hook), name);
}

void Variable::Backward(const Tensor& gradient, bool retain_graph) const {
  autograd::Backward({*this}, {gradient}, retain_graph);
}

NoGrad::NoGrad() : before_(std::exchange(no_grad, true)) {}
NoGrad::~NoGrad() { no_grad = before_; }
bool NoGrad::Active() { return no_grad; }

}  // namespace baton
