// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "autograd/graph_plan.h"
#include "autograd/node.h"

namespace baton::autograd {

// Where a pass leaves the gradients of leaves. The default adds to leaf.grad().
// Called from the thread that runs the node.
using GradSink =
    std::function<void(const Variable& leaf, const Gradient& grad)>;

// One backward pass over the part of the graph that `roots` reach. It may be
// fed piecemeal: a node runs once every edge into it from reached nodes and, if
// it is itself a root, its feed has come. A local pass feeds its one root at
// once; a distributed pass feeds a root for each gradient from the network.
//
// Feed runs what became ready on the calling thread. Concurrent Feeds are safe:
// one thread runs nodes at a time, the others hand over and return OK.
//
// Order: the nodes are put in a topological order that depends on the graph and
// the order of `roots` alone (a node before those it flows into; what only
// roots[0] reaches first, and of one node what its first edge reaches first).
// Ready nodes run in that order, accumulators at once. Several gradients of one
// place are summed in that order of their senders, a root's own feed first: one
// that arrives early waits, so that sums are equal bit for bit however feeds
// arrive. With roots in the order of micro-batches, a parameter's gradient is
// ((g0 + g1) + g2)..., as a loop of separate passes gives it; but one pass adds
// bf16 and f16 in their own type, and passes to a leaf in f32.
//
// A gradient is added into in place only when nobody else holds its storage.
// Dropping the last handle of an unfinished pass ends it with Cancelled.
// Thread-safe.
class GraphTask {
 public:
  struct Options {
    bool retain_graph = false;
    GradSink sink = nullptr;  // empty: leaf.AccumulateGrad
    // When set, the pass leaves gradients of leaves for which `postpone` holds
    // for later, where a node can compute them by themselves (weights of
    // convolutions and products, say) and the leaf has no hooks: `later` gets
    // what computes them, and `sink` the others, maybe of the same leaf.
    std::function<bool(const Variable& leaf)> postpone = nullptr;
    std::function<void(const Variable& leaf, DeferredGradient gradient)> later =
        nullptr;
    // Unless it is for all, only what leads to these places and ends runs, no
    // sink is called, and `capture(i, grad)` gets the gradient of
    // scope.wanted[i] where one flows.
    PlanScope scope = {};
    std::function<void(size_t i, const Tensor& grad)> capture = nullptr;
  };
  GraphTask(const std::vector<std::shared_ptr<Node>>& roots, Options options);

  // Gradients of `root`'s outputs (undefined: not used). Each root exactly
  // once; a second time is InvalidArgument, as are an unknown root and a wrong
  // number of gradients, and changes nothing. The first error, of a node (led
  // by "backward of NAME: ") or of a Fail, ends the pass; what is fed after it
  // is dropped and returns it.
  absl::Status Feed(const std::shared_ptr<Node>& root,
                    std::vector<Tensor> grads);
  void Fail(absl::Status status);

  // Calls `done` once, with OK when every reached node has run or with the
  // first error; at once, inline, if that is so already. By then no node or
  // sink runs any more and the pass holds no node.
  void OnDone(absl::AnyInvocable<void(absl::Status)> done);
  bool finished() const;

 private:
  class Work;
  std::shared_ptr<Work> work_;
};

// Gradients of `outputs` (weighted by `grad_outputs`, ones where undefined for
// one-element outputs) with respect to `inputs`, leaves or not; nothing is
// added to any grad(). An input that outputs do not reach gives an undefined
// tensor; one that does not require grad is an error. Throws Error.
std::vector<Tensor> Grad(const std::vector<Variable>& outputs,
                         const std::vector<Variable>& inputs,
                         const std::vector<Tensor>& grad_outputs = {},
                         bool retain_graph = false);

// Adds the gradients of all leaves below `outputs`; `sink` as above.
void Backward(const std::vector<Variable>& outputs,
              const std::vector<Tensor>& grad_outputs,
              bool retain_graph = false, GradSink sink = nullptr);
// The same with more to choose.
void Backward(const std::vector<Variable>& outputs,
              const std::vector<Tensor>& grad_outputs,
              GraphTask::Options options);

}  // namespace baton::autograd
