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

// Computes a gradient that a pass has postponed. Call it once. It holds
// everything it needs, and throws if some of that has been written in place
// since. The deferred gradients of one node may share work: do not call them
// concurrently.
using DeferredGradient = std::function<Gradient()>;

// An engine's request for the gradient of one forward input, and the node's
// answer.
struct GradientRequest {
  // Asks to postpone: the node may set `late` and return an undefined result.
  bool postpone = false;
  DeferredGradient late = nullptr;
  // If defined, this sum is owned exclusively: the node may accumulate the
  // gradient into it in place and return an undefined result.
  Tensor sum = {};
  bool rows = false;  // the result may be rows, because only a leaf receives it
};

// One recorded op. Its inputs in the backward direction are the gradients of
// its forward outputs; its results are the gradients of its forward inputs, one
// for each edge. Thread-compatible; a node runs on one thread at a time.
class Node {
 public:
  Node() = default;
  // Releases preceding nodes without recursion, however long the chain is.
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  virtual const char* name() const = 0;
  // `grads[i]` is undefined if output i was not used. Even if that is so for
  // all outputs, the node runs, because a distributed node must notify its
  // peer. A result may be undefined if the input needs no gradient (see
  // needs(i)).
  virtual std::vector<Tensor> Backward(const std::vector<Tensor>& grads) = 0;
  // Like Backward, with a request for each edge, which the node may ignore.
  virtual std::vector<Gradient> BackwardAs(
      const std::vector<Tensor>& grads, std::vector<GradientRequest>& requests);
  // Frees saved tensors after a pass that does not retain the graph.
  virtual void Release() {}

  const std::vector<Edge>& edges() const { return edges_; }
  bool needs(int input) const {
    return edges_[static_cast<size_t>(input)].valid();
  }
  int num_outputs() const { return num_outputs_; }  // of the forward op

  // Call these before the node's signature is first requested.
  void SetEdges(std::vector<Edge> edges) { edges_ = std::move(edges); }
  void SetNumOutputs(int count) { num_outputs_ = count; }

  // Hooks on output i's gradient, from Variable::AddHook. They are only called
  // with defined gradients. Any thread may add or remove them.
  using Hook = std::function<Tensor(const Tensor&)>;
  HookHandle AddHook(int output, Hook hook, const std::string& name = "");
  void RunHooks(std::vector<Tensor>& grads) const;
  bool has_hooks() const { return !hooks_.empty(); }

 protected:
  // Adds to the signature what distinguishes this node from others with the
  // same edges.
  virtual void Sign(Signature& signature) const;

 private:
  friend Signature SignatureOf(const Node& node);
  // Returns false if there is none yet.
  bool KeptSignature(Signature& signature) const;
  // Threads that call this concurrently store the same value.
  void KeepSignature(const Signature& signature) const;

  std::vector<Edge> edges_;
  int num_outputs_ = 1;
  mutable std::atomic<uint64_t> signature_low_{0};
  mutable std::atomic<uint64_t> signature_high_{0};  // 0: none yet
  Hooks<std::pair<int, Hook>> hooks_;
};

// The end of the graph at a leaf. It never runs: engines pass its gradient to
// the pass's sink.
class Accumulator final : public Node {
 public:
  explicit Accumulator(std::weak_ptr<VariableState> leaf);
  const char* name() const override { return "accumulate"; }
  std::vector<Tensor> Backward(const std::vector<Tensor>& grads) override;
  // Undefined if the leaf is gone.
  Variable leaf() const;

 private:
  std::weak_ptr<VariableState> leaf_;
};

// A tensor kept for backward; Get throws if it has been written in place since.
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(Tensor tensor);
  // Throws Error led by `op` if the version changed or the graph was freed.
  const Tensor& Get(const char* op) const;
  void Release();
  bool defined() const { return tensor_.defined(); }

 private:
  Tensor tensor_;
  uint64_t version_ = 0;
  bool released_ = false;
};

}  // namespace baton::autograd
