// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "autograd/node.h"
#include "core/mutex.h"

namespace baton::autograd {

// Where a pass leaves the gradients of leaves. The default adds to leaf.grad().
// Called from the thread that runs the node.
using GradSink = std::function<void(const Variable& leaf, const Tensor& grad)>;

// One backward pass over the part of the graph that `roots` reach. It may be
// fed piecemeal: a node runs once every edge into it from reached nodes and, if
// it is itself a root, its feed has come. A local pass feeds its one root at
// once; a distributed pass feeds a root for each gradient from the network.
//
// Feed runs what became ready on the calling thread, in an order that depends
// on the graph and feeds alone: later forward ops first. Concurrent Feeds are
// safe: one thread runs nodes at a time, the others hand over and return.
// Thread-safe.
class GraphTask {
 public:
  struct Options {
    bool retain_graph = false;
    GradSink sink;  // empty: leaf.AccumulateGrad
  };
  GraphTask(const std::vector<std::shared_ptr<Node>>& roots, Options options);

  // Gradients of `root`'s outputs (undefined: not used). Each root exactly
  // once; a second time is InvalidArgument. The first error, of a node or of a
  // Fail, ends the pass; what is fed after it is dropped and returns it.
  absl::Status Feed(const std::shared_ptr<Node>& root,
                    std::vector<Tensor> grads);
  void Fail(absl::Status status);

  // Calls `done` once, with OK when every reached node has run or with the
  // first error; at once, inline, if that is so already.
  void OnDone(absl::AnyInvocable<void(absl::Status)> done);
  bool finished() const;

 private:
  struct Work;
  std::shared_ptr<Work> work_;
};

// Gradients of `outputs` (weighted by `grad_outputs`, ones where undefined for
// one-element outputs) with respect to `inputs`, leaves or not; nothing is
// added to any grad(). An input that outputs do not reach gives an undefined
// tensor. Throws Error.
std::vector<Tensor> Grad(const std::vector<Variable>& outputs,
                         const std::vector<Variable>& inputs,
                         const std::vector<Tensor>& grad_outputs = {},
                         bool retain_graph = false);

// Adds the gradients of all leaves below `outputs`; `sink` as above.
void Backward(const std::vector<Variable>& outputs,
              const std::vector<Tensor>& grad_outputs,
              bool retain_graph = false, GradSink sink = nullptr);

}  // namespace baton::autograd
