// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/function.h"

#include <algorithm>
#include <utility>

namespace baton::autograd {
namespace {

// The formulas of one input; they are empty if it needs no gradient.
struct InputFormulas {
  Formula gradient;
  AddingFormula add_gradient;
  RowsFormula rows;
};

// Local ops record only this kind of node.
class FunctionNode final : public Node,
                           public std::enable_shared_from_this<FunctionNode> {
 public:
  FunctionNode(const char* op, Tensors saved, std::vector<InputFormulas> each)
      : FunctionNode(op, std::move(saved), nullptr, GradientParts::kApart,
                     std::move(each)) {}
  FunctionNode(const char* op, Tensors saved, JointFormula joint,
               GradientParts parts)
      : FunctionNode(op, std::move(saved), std::move(joint), parts, {}) {}

  const char* name() const override { return op_; }

  Tensors Backward(const Tensors& grads) override {
    std::vector<GradientRequest> requests(edges().size());
    Tensors results;
    for (const Gradient& result : BackwardAs(grads, requests))
      results.push_back(result.values());  // no rows were requested
    return results;
  }

  std::vector<Gradient> BackwardAs(
      const Tensors& grads, std::vector<GradientRequest>& requests) override {
    std::vector<Gradient> results(edges().size());
    const bool used = std::any_of(grads.begin(), grads.end(),
                                  [](const Tensor& g) { return g.defined(); });
    if (!used) return results;
    if (joint_) {
      Tensors all = Jointly(grads, requests);
      return {all.begin(), all.end()};
    }
    const Backprop pass(op_, *this, grads, saved_);
    for (size_t i = 0; i < each_.size(); ++i) {
      if (!each_[i].gradient) continue;
      GradientRequest& request = requests[i];
      if (request.postpone) {
        request.late = Late(i, grads, request.rows);
      } else if (request.sum.defined() && each_[i].add_gradient) {
        each_[i].add_gradient(pass, request.sum);
      } else {
        results[i] = Compute(i, pass, request.rows);
      }
    }
    return results;
  }

  void Release() override {
    for (SavedTensor& saved : saved_) saved.Release();
  }

 private:
  FunctionNode(const char* op, Tensors saved, JointFormula joint,
               GradientParts parts, std::vector<InputFormulas> each)
      : op_(op),
        joint_(std::move(joint)),
        parts_(parts),
        each_(std::move(each)) {
    saved_.reserve(saved.size());
    for (Tensor& tensor : saved) saved_.emplace_back(std::move(tensor));
  }

  Gradient Compute(size_t i, const Backprop& pass, bool rows) const {
    const InputFormulas& formulas = each_[i];
    return rows && formulas.rows ? formulas.rows(pass)
                                 : formulas.gradient(pass);
  }

  DeferredGradient Late(size_t i, const Tensors& grads, bool rows) {
    return [self = shared_from_this(), i, grads, saved = saved_, rows] {
      return self->Compute(i, Backprop(self->op_, *self, grads, saved), rows);
    };
  }

  Tensors Jointly(const Tensors& grads,
                  std::vector<GradientRequest>& requests) {
    std::vector<bool> now(requests.size()), later(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      later[i] = requests[i].postpone && parts_ == GradientParts::kApart;
      now[i] = !later[i];
    }
    // The first of these functions that is called computes all: the gradients
    // of weight and bias come from one product, and are bit for bit the same as
    // if they had not been postponed.
    const auto late = std::make_shared<Tensors>();
    for (size_t i = 0; i < requests.size(); ++i) {
      if (!later[i]) continue;
      requests[i].late = [self = shared_from_this(), i, grads, saved = saved_,
                          later, late] {
        if (late->empty())
          *late = self->joint_(Backprop(self->op_, *self, grads, saved, later));
        return std::exchange((*late)[i], Tensor());
      };
    }
    return joint_(Backprop(op_, *this, grads, saved_, std::move(now)));
  }

  const char* const op_;
  std::vector<SavedTensor> saved_;
  const JointFormula joint_;  // null if each_ is used
  const GradientParts parts_;
  const std::vector<InputFormulas> each_;
};

// Returns no edges if nothing is to be recorded.
std::vector<Edge> EdgesOf(const std::vector<Variable>& inputs) {
  std::vector<Edge> edges;
  if (NoGrad::Active()) return edges;
  const bool any = std::any_of(inputs.begin(), inputs.end(),
                               [](const auto& v) { return v.requires_grad(); });
  if (!any) return edges;
  for (const Variable& input : inputs) edges.push_back(input.gradient_edge());
  return edges;
}

}  // namespace

Variable Record(const char* op, Tensor y, Tensors saved,
                std::initializer_list<Input> inputs) {
  std::vector<Variable> values;
  for (const Input& input : inputs) values.push_back(input.value);
  std::vector<Edge> edges = EdgesOf(values);
  if (edges.empty()) return Variable(std::move(y));
  std::vector<InputFormulas> each;
  for (const Input& input : inputs) {
    const bool needed = edges[each.size()].valid();
    each.push_back(
        needed ? InputFormulas{input.gradient, input.add_gradient, input.rows}
               : InputFormulas());
  }
  const auto node =
      std::make_shared<FunctionNode>(op, std::move(saved), std::move(each));
  node->SetEdges(std::move(edges));
  return Variable(std::move(y), {node, 0});
}

Variable RecordJoint(const char* op, Tensor y, Tensors saved,
                     const std::vector<Variable>& inputs, JointFormula formula,
                     GradientParts parts) {
  return RecordMany(op, {std::move(y)}, std::move(saved), inputs,
                    std::move(formula), parts)[0];
}

std::vector<Variable> RecordMany(const char* op, const Tensors& outputs,
                                 Tensors saved,
                                 const std::vector<Variable>& inputs,
                                 JointFormula formula, GradientParts parts) {
  std::vector<Edge> edges = EdgesOf(inputs);
  if (edges.empty()) return {outputs.begin(), outputs.end()};
  const auto node = std::make_shared<FunctionNode>(op, std::move(saved),
                                                   std::move(formula), parts);
  node->SetEdges(std::move(edges));
  node->SetNumOutputs(static_cast<int>(outputs.size()));
  std::vector<Variable> results;
  for (size_t i = 0; i < outputs.size(); ++i)
    results.push_back(Variable(outputs[i], {node, static_cast<int>(i)}));
  return results;
}

}  // namespace baton::autograd
