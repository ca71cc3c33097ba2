// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/function.h"

#include <algorithm>
#include <utility>

namespace baton::autograd {
namespace {

// The one kind of node that local ops record.
class FunctionNode final : public Node {
 public:
  FunctionNode(const char* op, Tensors saved, JointFormula formula)
      : op_(op), formula_(std::move(formula)) {
    saved_.reserve(saved.size());
    for (Tensor& tensor : saved) saved_.emplace_back(std::move(tensor));
  }

  const char* name() const override { return op_; }

  Tensors Backward(const Tensors& grads) override {
    const bool used = std::any_of(grads.begin(), grads.end(),
                                  [](const Tensor& g) { return g.defined(); });
    if (!used) return Tensors(edges().size());
    return formula_(Backprop(op_, *this, grads, saved_));
  }

  void Release() override {
    for (SavedTensor& saved : saved_) saved.Release();
  }

 private:
  const char* const op_;
  std::vector<SavedTensor> saved_;
  const JointFormula formula_;
};

std::shared_ptr<Node> MakeNode(const char* op, std::vector<Edge> edges,
                               Tensors saved, JointFormula formula) {
  auto node =
      std::make_shared<FunctionNode>(op, std::move(saved), std::move(formula));
  node->SetEdges(std::move(edges));
  return node;
}

// Empty when nothing is to be recorded.
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
  std::vector<Formula> formulas;
  for (const Input& input : inputs) {
    const bool needed = edges[formulas.size()].valid();
    formulas.push_back(needed ? input.gradient : nullptr);
  }
  auto each = [formulas = std::move(formulas)](const Backprop& pass) {
    Tensors results(formulas.size());
    for (size_t i = 0; i < formulas.size(); ++i) {
      if (formulas[i]) results[i] = formulas[i](pass);
    }
    return results;
  };
  return Variable(
      std::move(y),
      {MakeNode(op, std::move(edges), std::move(saved), std::move(each)), 0});
}

Variable RecordJoint(const char* op, Tensor y, Tensors saved,
                     const std::vector<Variable>& inputs,
                     JointFormula formula) {
  return RecordMany(op, {std::move(y)}, std::move(saved), inputs,
                    std::move(formula))[0];
}

std::vector<Variable> RecordMany(const char* op, const Tensors& outputs,
                                 Tensors saved,
                                 const std::vector<Variable>& inputs,
                                 JointFormula formula) {
  std::vector<Edge> edges = EdgesOf(inputs);
  if (edges.empty()) return {outputs.begin(), outputs.end()};
  const auto node =
      MakeNode(op, std::move(edges), std::move(saved), std::move(formula));
  node->SetNumOutputs(static_cast<int>(outputs.size()));
  std::vector<Variable> results;
  for (size_t i = 0; i < outputs.size(); ++i)
    results.push_back(Variable(outputs[i], {node, static_cast<int>(i)}));
  return results;
}

}  // namespace baton::autograd
