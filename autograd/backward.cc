// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <unordered_map>
#include <utility>

#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "core/status.h"

namespace baton::autograd {
namespace {

// Returns the gradient of `output` to start from.
Tensor Seed(const char* op, const Variable& output, const Tensor& given) {
  const Tensor& value = output.tensor();
  if (!given.defined()) {
    Require(value.numel() == 1, op, "a value of shape ",
            value.shape().ToString(),
            " needs a gradient to start from; only one-element values do not");
    return Tensor::Full(value.shape(), 1.0,
                        {.dtype = value.dtype(), .device = value.device()});
  }
  Require(given.shape() == value.shape() && given.dtype() == value.dtype(), op,
          "a gradient ", Name(given.dtype()), given.shape().ToString(),
          " does not fit its value ", Name(value.dtype()),
          value.shape().ToString());
  return given;
}

// The nodes that made the outputs, and the gradients to feed to each of them.
struct Feeds {
  std::vector<std::shared_ptr<Node>> roots;
  std::unordered_map<const Node*, std::vector<Tensor>> grads;
};

Feeds FeedsOf(const char* op, const std::vector<Variable>& outputs,
              const std::vector<Tensor>& grad_outputs) {
  Require(grad_outputs.empty() || grad_outputs.size() == outputs.size(), op,
          grad_outputs.size(), " gradients for ", outputs.size(), " outputs");
  Feeds feeds;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Require(outputs[i].defined(), op, "output ", i, " is undefined");
    const Edge edge = outputs[i].gradient_edge();
    Require(edge.valid(), op, "output ", i, " does not require grad");
    std::vector<Tensor>& grads = feeds.grads[edge.node.get()];
    if (grads.empty()) {
      grads.resize(static_cast<size_t>(edge.node->num_outputs()));
      feeds.roots.push_back(edge.node);
    }
    AccumulateInto(grads[static_cast<size_t>(edge.index)],
                   Seed(op, outputs[i],
                        grad_outputs.empty() ? Tensor() : grad_outputs[i]));
  }
  return feeds;
}

void RunPass(Feeds feeds, GraphTask::Options options) {
  GraphTask task(feeds.roots, std::move(options));
  for (const auto& root : feeds.roots) {
    const absl::Status status =
        task.Feed(root, std::move(feeds.grads[root.get()]));
    if (!status.ok()) throw Error(status);
  }
}

}  // namespace

std::vector<Tensor> Grad(const std::vector<Variable>& outputs,
                         const std::vector<Variable>& inputs,
                         const std::vector<Tensor>& grad_outputs,
                         bool retain_graph) {
  std::vector<Tensor> results(inputs.size());
  if (inputs.empty()) return results;
  GraphTask::Options options;
  options.retain_graph = retain_graph;
  options.scope.all = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    options.scope.wanted.push_back(inputs[i].gradient_edge());
    Require(options.scope.wanted.back().valid(), "grad", "input ", i,
            " does not require grad");
  }
  options.capture = [&](size_t i, const Tensor& grad) { results[i] = grad; };
  RunPass(FeedsOf("grad", outputs, grad_outputs), std::move(options));
  return results;
}

void Backward(const std::vector<Variable>& outputs,
              const std::vector<Tensor>& grad_outputs, bool retain_graph,
              GradSink sink) {
  GraphTask::Options options;
  options.retain_graph = retain_graph;
  options.sink = std::move(sink);
  Backward(outputs, grad_outputs, std::move(options));
}

void Backward(const std::vector<Variable>& outputs,
              const std::vector<Tensor>& grad_outputs,
              GraphTask::Options options) {
  RunPass(FeedsOf("backward", outputs, grad_outputs), std::move(options));
}

}  // namespace baton::autograd
