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

// Receives the gradients of leaves. The default adds to leaf.grad(). Called on
// the thread that runs the node.
using GradSink =
    std::function<void(const Variable& leaf, const Gradient& grad)>;

// One backward pass over the part of the graph that `roots` reach. It may be
// fed piecemeal: a node runs once every edge into it from reached nodes has
// delivered and, if it is a root, it has been fed. A local pass feeds its one
// root at once; a distributed pass feeds a root for each gradient from the
// network.
//
// Feed runs nodes that become ready on the calling thread. Concurrent Feeds are
// safe: one thread at a time runs nodes, the others pass on their work and
// return OK.
//
// Order: the nodes have a topological order that depends only on the graph and
// the order of `roots` (a node precedes those it flows into; what only roots[0]
// reaches comes first, and for one node what its first edge reaches). Ready
// nodes run in that order, accumulators at once. Several gradients of one place
// are summed in the order of their senders, a root's own feed first. A gradient
// that arrives early waits, so that sums are equal bit for bit in whatever
// order feeds arrive. If roots are in the order of micro-batches, a parameter's
// gradient is ((g0 + g1) + g2)..., as in a loop of separate passes; but one
// pass adds bf16 and f16 in their own dtype, whereas separate passes add to a
// leaf in f32.
//
// A gradient is accumulated in place only if its storage is not shared. If the
// last handle of an unfinished pass is dropped, the pass ends with Cancelled.
// Thread-safe.
class GraphTask {
 public:
  struct Options {
    bool retain_graph = false;
    GradSink sink = nullptr;  // empty: leaf.AccumulateGrad
    // If set, the pass postpones gradients of leaves for which `postpone`
    // returns true, if a node can compute them separately (for example weights
    // of convolutions and products) and the leaf has no hooks: `later` receives
    // functions that compute them. `sink` receives all other gradients, maybe
    // of the same leaf.
    std::function<bool(const Variable& leaf)> postpone = nullptr;
    std::function<void(const Variable& leaf, DeferredGradient gradient)> later =
        nullptr;
    // If the scope is not all of the graph, only nodes that lead to its places
    // and ends run, no sink is called, and `capture(i, grad)` receives the
    // gradient of scope.wanted[i] if there is one.
    PlanScope scope = {};
    std::function<void(size_t i, const Tensor& grad)> capture = nullptr;
  };
  GraphTask(const std::vector<std::shared_ptr<Node>>& roots, Options options);

  // `grads` are gradients of `root`'s outputs; undefined if an output was not
  // used. Feed each root exactly once: a second feed, an unknown root and a
  // wrong number of gradients return InvalidArgument and change nothing. The
  // first error, of a node (led by "backward of NAME: ") or of a Fail, ends the
  // pass; later feeds are dropped and return that error.
  absl::Status Feed(const std::shared_ptr<Node>& root,
                    std::vector<Tensor> grads);
  void Fail(absl::Status status);

  // Calls `done` once: with OK when every reached node has run, or with the
  // first error; inline, if the pass has already ended. By then no node or sink
  // runs any more, and the pass holds no node.
  void OnDone(absl::AnyInvocable<void(absl::Status)> done);
  bool finished() const;

 private:
  class Work;
  std::shared_ptr<Work> work_;
};

// Returns gradients of `outputs` (weighted by `grad_outputs`; undefined means
// ones, for one-element outputs) with respect to `inputs`, leaves or not,
// without adding to any grad(). The gradient of an input that the outputs do
// not depend on is undefined; an input that does not require grad is an error.
// Throws Error.
std::vector<Tensor> Grad(const std::vector<Variable>& outputs,
                         const std::vector<Variable>& inputs,
                         const std::vector<Tensor>& grad_outputs = {},
                         bool retain_graph = false);

// Adds to the gradients of all leaves that `outputs` depend on, or passes what
// it would add to `sink`.
void Backward(const std::vector<Variable>& outputs,
              const std::vector<Tensor>& grad_outputs,
              bool retain_graph = false, GradSink sink = nullptr);
// Like the above, with all options.
void Backward(const std::vector<Variable>& outputs,
              const std::vector<Tensor>& grad_outputs,
              GraphTask::Options options);

}  // namespace baton::autograd
