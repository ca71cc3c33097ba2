// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/node.h"

#include <algorithm>

#include "core/status.h"

namespace baton::autograd {
namespace {

// The edges of nodes that are being destroyed on this thread. The outermost
// destructor releases them, which avoids deep recursion. This is a plain
// pointer, so that nodes may be destroyed while the thread ends.
thread_local std::vector<Edge>* orphans = nullptr;

}  // namespace

Node::~Node() {
  if (orphans != nullptr) {
    for (Edge& edge : edges_) {
      if (edge.valid()) orphans->push_back(std::move(edge));
    }
    return;
  }
  std::vector<Edge> waiting = std::move(edges_);
  orphans = &waiting;
  while (!waiting.empty()) {
    Edge last = std::move(waiting.back());
    waiting.pop_back();
  }
  orphans = nullptr;
}

std::vector<Gradient> Node::BackwardAs(const std::vector<Tensor>& grads,
                                       std::vector<GradientRequest>&) {
  std::vector<Tensor> results = Backward(grads);
  return {results.begin(), results.end()};
}

void Node::Sign(Signature& signature) const {
  signature.Add(name());
  signature.Add(static_cast<uint64_t>(num_outputs_));
}

bool Node::KeptSignature(Signature& signature) const {
  signature.high_ = signature_high_.load(std::memory_order_acquire);
  signature.low_ = signature_low_.load(std::memory_order_relaxed);
  return signature.high_ != 0;
}

void Node::KeepSignature(const Signature& signature) const {
  signature_low_.store(signature.low_, std::memory_order_relaxed);
  signature_high_.store(std::max<uint64_t>(signature.high_, 1),
                        std::memory_order_release);
}

HookHandle Node::AddHook(int output, Hook hook, const std::string& name) {
  return hooks_.Add({output, std::move(hook)}, name);
}

void Node::RunHooks(std::vector<Tensor>& grads) const {
  hooks_.ForEach([&](const std::pair<int, Hook>& hook) {
    Tensor& grad = grads[static_cast<size_t>(hook.first)];
    if (!grad.defined()) return;
    Tensor replacement = hook.second(grad);
    if (replacement.defined()) grad = std::move(replacement);
  });
}

Accumulator::Accumulator(std::weak_ptr<VariableState> leaf)
    : leaf_(std::move(leaf)) {}

std::vector<Tensor> Accumulator::Backward(const std::vector<Tensor>&) {
  Fail("accumulate", "an accumulator is not run", absl::StatusCode::kInternal);
}

Variable Accumulator::leaf() const {
  Variable variable;
  variable.state_ = leaf_.lock();
  return variable;
}

SavedTensor::SavedTensor(Tensor tensor) : tensor_(std::move(tensor)) {
  if (tensor_.defined()) version_ = tensor_.version();
}

const Tensor& SavedTensor::Get(const char* op) const {
  if (released_) {
    Fail(op,
         "what backward needs was freed by an earlier backward; pass "
         "retain_graph to the first one",
         absl::StatusCode::kFailedPrecondition);
  }
  if (tensor_.defined() && tensor_.version() != version_) {
    Fail(op,
         absl::StrCat("a tensor that backward needs, ", Name(tensor_.dtype()),
                      tensor_.shape().ToString(),
                      ", was written in place after the forward (version ",
                      version_, ", now ", tensor_.version(), ")"),
         absl::StatusCode::kFailedPrecondition);
  }
  return tensor_;
}

void SavedTensor::Release() {
  const Tensor none;
  tensor_ = none;
  released_ = true;
}

}  // namespace baton::autograd
