// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/edges.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

thread_local GradientCarrier* running_carrier = nullptr;

}  // namespace

SendNode::SendNode(EdgeId id, std::string to,
                   const std::vector<Variable>& values)
    : id_(id), to_(std::move(to)) {
  std::vector<autograd::Edge> edges;
  for (const Variable& value : values) {
    edges.push_back(value.gradient_edge());
    forms_.push_back({value.shape(), value.dtype(), value.tensor().device()});
  }
  SetNumOutputs(static_cast<int>(values.size()));
  SetEdges(std::move(edges));
}

std::vector<Tensor> SendNode::Backward(const std::vector<Tensor>& grads) {
  std::vector<Tensor> placed;
  for (size_t i = 0; i < grads.size(); ++i) {
    placed.push_back(grads[i].defined() ? grads[i].To(forms_[i].device)
                                        : Tensor());
  }
  return placed;
}

absl::Status SendNode::CheckGradients(const std::vector<Tensor>& grads) const {
  if (grads.size() != forms_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", forms_.size(), " gradients, got ", grads.size()));
  }
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    if (grads[i].shape() != forms_[i].shape ||
        grads[i].dtype() != forms_[i].dtype) {
      return absl::InvalidArgumentError(absl::StrCat(
          "gradient ", i, " has shape ", grads[i].shape().ToString(),
          " for a value of shape ", forms_[i].shape.ToString(),
          grads[i].dtype() == forms_[i].dtype ? "" : " and another dtype"));
    }
  }
  return absl::OkStatus();
}

GradientCarrier::Running::Running(GradientCarrier* carrier)
    : before_(running_carrier) {
  running_carrier = carrier;
}

GradientCarrier::Running::~Running() { running_carrier = before_; }

GradientCarrier* GradientCarrier::Running::Get() { return running_carrier; }

ReceiveNode::ReceiveNode(ContextId context, EdgeId id, std::string from,
                         int values, const autograd::Signature& sent)
    : context_(std::move(context)),
      id_(id),
      from_(std::move(from)),
      sent_(sent) {
  SetNumOutputs(values);
}

// The signature excludes the context, which differs in each step: a pass checks
// it.
void ReceiveNode::Sign(autograd::Signature& signature) const {
  Node::Sign(signature);
  signature.Add(static_cast<uint64_t>(id_));
  signature.Add(from_);
  signature.Add(sent_);
}

std::vector<Tensor> ReceiveNode::Backward(const std::vector<Tensor>& grads) {
  GradientCarrier* carrier = GradientCarrier::Running::Get();
  Require(carrier != nullptr, "receive", "this value came from worker ", from_,
          ": call Backward on the dist::Context of its call");
  carrier->Carry(*this, grads);
  return {};
}

int SendCrossing::Add(const Variable& value) {
  if (!value.defined() || !value.requires_grad()) return -1;
  values_.push_back(value);
  return static_cast<int>(values_.size()) - 1;
}

absl::StatusOr<Variable> ReceiveCrossing::Take(Tensor tensor, int position) {
  if (position < 0) return Variable(std::move(tensor));
  if (node_ == nullptr || position >= node_->num_outputs()) {
    return absl::InvalidArgumentError(
        absl::StrCat("value ", position,
                     " is not among those of its message that require "
                     "grad"));
  }
  return Variable(std::move(tensor), autograd::Edge{node_, position});
}

}  // namespace baton::dist
