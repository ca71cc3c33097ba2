// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/gradient.h"
#include "autograd/hooks.h"
#include "autograd/signature.h"
#include "autograd/variable.h"
#include "core/tensor.h"

namespace baton::autograd {

// Computes a gradient that a pass has left for later. To be called once; holds
// all it needs, and throws when some of that was written in place since. Those
// of one node may share the work: not to be called at once.
using DeferredGradient = std::function<Gradient()>;

// How an engine would like the gradient of one forward input, and what the node
// made of that.
struct GradientRequest {
  // Rather what computes it: `late`, and an undefined result.
  bool postpone = false;
  DeferredGradient late = nullptr;
  // Where defined, nobody else's: rather added to this, and an undefined
  // result.
  Tensor sum = {};
  bool rows = false;  // the result may be rows: it goes to a leaf alone
};

// One recorded op. Its inputs in the backward direction are the gradients of
// its forward outputs; its results are the gradients of its forward inputs, one
// for each edge. Thread-compatible; a node runs on one thread at a time.
class Node {
 public:
  Node() = default;
  // Lets go of the nodes before it without recursion, however long the chain.
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  virtual const char* name() const = 0;
  // `grads[i]` is undefined when output i was not used; it may be so for all
  // outputs, and the node still runs (a distributed node must tell its peer). A
  // result may be undefined when the input needs no gradient (see needs(i)).
  virtual std::vector<Tensor> Backward(const std::vector<Tensor>& grads) = 0;
  // The same with a request for each edge, which nodes need not grant.
  virtual std::vector<Gradient> BackwardAs(
      const std::vector<Tensor>& grads, std::vector<GradientRequest>& requests);
  // Frees saved tensors after a pass that does not retain the graph.
  virtual void Release() {}

  const std::vector<Edge>& edges() const { return edges_; }
  bool needs(int input) const {
    return edges_[static_cast<size_t>(input)].valid();
  }
  int num_outputs() const { return num_outputs_; }  // of the forward op

  // Before anybody asks for its signature.
  void SetEdges(std::vector<Edge> edges) { edges_ = std::move(edges); }
  void SetNumOutputs(int count) { num_outputs_ = count; }

  // Hooks on output i's gradient, from Variable::AddHook. They see defined
  // gradients only, and may come and go on any thread.
  using Hook = std::function<Tensor(const Tensor&)>;
  HookHandle AddHook(int output, Hook hook, const std::string& name = "");
  void RunHooks(std::vector<Tensor>& grads) const;
  bool has_hooks() const { return !hooks_.empty(); }

 protected:
  // What tells it from other nodes with the same edges.
  virtual void Sign(Signature& signature) const;

 private:
  friend Signature SignatureOf(const Node& node);
  // False when it has none yet.
  bool KeptSignature(Signature& signature) const;
  // Threads that make it at once make the same.
  void KeepSignature(const Signature& signature) const;

  std::vector<Edge> edges_;
  int num_outputs_ = 1;
  mutable std::atomic<uint64_t> signature_low_{0};
  mutable std::atomic<uint64_t> signature_high_{0};  // 0: none yet
  Hooks<std::pair<int, Hook>> hooks_;
};

// The end of the graph at a leaf. Never run: engines hand its gradient to the
// pass's sink.
class Accumulator final : public Node {
 public:
  explicit Accumulator(std::weak_ptr<VariableState> leaf);
  const char* name() const override { return "accumulate"; }
  std::vector<Tensor> Backward(const std::vector<Tensor>& grads) override;
  // Undefined when the leaf is gone.
  Variable leaf() const;

 private:
  std::weak_ptr<VariableState> leaf_;
};

// A tensor kept for backward, which throws when it was written in place since.
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(Tensor tensor);
  // Throws Error led by `op` when the version moved or the graph was freed.
  const Tensor& Get(const char* op) const;
  void Release();
  bool defined() const { return tensor_.defined(); }

 private:
  Tensor tensor_;
  uint64_t version_ = 0;
  bool released_ = false;
};

}  // namespace baton::autograd
