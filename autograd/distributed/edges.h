// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autograd/distributed/context_id.h"
#include "autograd/node.h"
#include "autograd/signature.h"
#include "rpc/call_scope.h"

// The points where the graph crosses from one worker to another. A message with
// values that require grad leaves a SendNode at its sender and a ReceiveNode at
// its receiver, which are paired by (sender, EdgeId). Gradients travel from the
// receive node back to the send node.
namespace baton::dist {

// A root of the sender's part of the graph. It is fed with the gradient that
// the receiver sends back, which may be on any device. Thread-compatible.
class SendNode final : public autograd::Node {
 public:
  SendNode(EdgeId id, std::string to, const std::vector<Variable>& values);

  const char* name() const override { return "send"; }
  // Moves each gradient to the device of the value that was sent.
  std::vector<Tensor> Backward(const std::vector<Tensor>& grads) override;

  EdgeId id() const { return id_; }
  const std::string& to() const { return to_; }  // worker
  // Returns InvalidArgument unless the gradients fit the values that were sent;
  // undefined tensors always do.
  absl::Status CheckGradients(const std::vector<Tensor>& grads) const;

 private:
  struct Form {
    Shape shape;
    DType dtype;
    Device device;
  };
  const EdgeId id_;
  const std::string to_;
  std::vector<Form> forms_;
};

class ReceiveNode;
// Takes the gradients that a pass sends back over a receive edge. Implemented
// by Pass.
class GradientCarrier {
 public:
  virtual ~GradientCarrier() = default;
  virtual void Carry(const ReceiveNode& edge, std::vector<Tensor> grads) = 0;

  // Registers the carrier that runs graph nodes on this thread, for its
  // lifetime.
  class Running {
   public:
    explicit Running(GradientCarrier* carrier);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    static GradientCarrier* Get();

   private:
    GradientCarrier* const before_;
  };
};

// The source of received values, where the receiver's part of the graph ends.
// Passes the gradients to the carrier that runs it; throws Error if there is
// none, as in a backward without the context. Thread-compatible.
class ReceiveNode final : public autograd::Node {
 public:
  // `sent` is the signature of the values' graph at the sender.
  ReceiveNode(ContextId context, EdgeId id, std::string from, int values,
              const autograd::Signature& sent);

  const char* name() const override { return "receive"; }
  std::vector<Tensor> Backward(const std::vector<Tensor>& grads) override;

  const ContextId& context() const { return context_; }
  EdgeId id() const { return id_; }                  // within the context
  const std::string& from() const { return from_; }  // worker

 protected:
  void Sign(autograd::Signature& signature) const override;

 private:
  const ContextId context_;
  const EdgeId id_;
  const std::string from_;
  const autograd::Signature sent_;
};

// Collects the values of one outgoing message that require grad.
class SendCrossing final : public rpc::Crossing {
 public:
  explicit SendCrossing(std::string to) : to_(std::move(to)) {}

  // Returns the position of `value` among those that require grad; -1 if it
  // does not.
  int Add(const Variable& value);

  const std::string& to() const { return to_; }
  const std::vector<Variable>& values() const { return values_; }

 private:
  const std::string to_;
  std::vector<Variable> values_;
};

// Connects received values to the graph.
class ReceiveCrossing final : public rpc::Crossing {
 public:
  // `node` is null if nothing in the message requires grad.
  explicit ReceiveCrossing(std::shared_ptr<ReceiveNode> node)
      : node_(std::move(node)) {}

  // `position` is what SendCrossing::Add returned; InvalidArgument if the
  // message has no such value.
  absl::StatusOr<Variable> Take(Tensor tensor, int position);

 private:
  const std::shared_ptr<ReceiveNode> node_;
};

}  // namespace baton::dist
