// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/torch/torch_part.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "models/torch/torch_tensor.h"

namespace baton::nn {
namespace {

// Replaces torch's tensor by Baton's unless they share memory.
void PutIn(const at::Tensor& torch, const Tensor& tensor) {
  if (!SameMemory(torch, tensor)) torch.set_data(ToTorch(tensor));
}

}  // namespace

TorchPart::TorchPart(std::shared_ptr<::torch::nn::Module> module,
                     std::shared_ptr<TorchState> state)
    : module_(std::move(module)), state_(std::move(state)) {
  Require(module_ != nullptr, "torch_module", "no module of torch");
  WithTorchErrors([this] {
    state_->parts.push_back(this);
    Train(module_->is_training());
    AddParameters();
    AddBuffers();
    AddParts();
  });
}

void TorchPart::AddParameters() {
  for (const auto& item : module_->named_parameters(/*recurse=*/false)) {
    const at::Tensor& torch = item.value();
    auto& all = state_->parameters;
    const auto found = std::find_if(
        all.begin(), all.end(),
        [&](const auto& known) { return known.torch.is_same(torch); });
    if (found != all.end()) {  // tied: one Variable under both names
      RegisterParameter(item.key(), found->baton->tensor()) = *found->baton;
      continue;
    }
    Variable& baton = RegisterParameter(item.key(), FromTorch().Bring(torch));
    baton.set_requires_grad(torch.requires_grad());
    all.push_back({torch, &baton});
  }
}

void TorchPart::AddBuffers() {
  for (const auto& item : module_->named_buffers(/*recurse=*/false)) {
    Tensor& baton = RegisterBuffer(item.key(), FromTorch().Bring(item.value()));
    state_->buffers.push_back({item.value(), &baton});
  }
}

void TorchPart::AddParts() {
  for (const auto& item : module_->named_children()) {
    const auto found = std::find_if(
        state_->parts.begin(), state_->parts.end(),
        [&](const TorchPart* part) { return part->module_ == item.value(); });
    if (found == state_->parts.end()) {
      RegisterModule(item.key(),
                     std::make_shared<TorchPart>(item.value(), state_));
    } else {
      RegisterModule(item.key(), (*found)->shared_from_this());
    }
  }
}

void TorchPart::TellTorch() const {
  for (const TorchPart* part : state_->parts) {
    if (part->module_->is_training() != part->is_training())
      part->module_->train(part->is_training());
  }
  for (const auto& [torch, baton] : state_->parameters) {
    PutIn(torch, baton->tensor());
    if (torch.requires_grad() != baton->requires_grad())
      torch.set_requires_grad(baton->requires_grad());
  }
  for (const auto& [torch, baton] : state_->buffers) PutIn(torch, *baton);
}

}  // namespace baton::nn
