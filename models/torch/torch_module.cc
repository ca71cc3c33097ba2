// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/torch/torch_module.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "autograd/node.h"
#include "autograd/tensors_of.h"
#include "core/status.h"
#include "core/stream.h"
#include "models/torch/torch_stream.h"
#include "models/torch/torch_tensor.h"

namespace baton::nn {
namespace {

using TorchValues = TorchModule::TorchValues;
using Tensors = std::vector<Tensor>;

constexpr char kOp[] = "torch_module";

// A recorded forward: its inputs and outputs in torch's graph, and the Baton
// tensors that must not be written before the backward, because torch would not
// notice.
class TorchNode final : public autograd::Node {
 public:
  TorchNode(Device device, TorchValues inputs, TorchValues outputs,
            const Tensors& watched)
      : device_(device),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {
    for (const Tensor& tensor : watched)
      if (tensor.defined()) watched_.emplace_back(tensor);
  }

  const char* name() const override { return kOp; }
  Tensors Backward(const Tensors& grads) override {
    for (const autograd::SavedTensor& saved : watched_) saved.Get(kOp);
    return WithTorchErrors([&] { return RunTorch(grads); });
  }
  void Release() override {
    inputs_.clear();
    outputs_.clear();
    for (autograd::SavedTensor& saved : watched_) saved.Release();
  }

 private:
  Tensors RunTorch(const Tensors& grads) const {
    const TorchStream stream(device_);
    FromTorch bringing;
    TorchValues outputs, gradients, wanted;
    std::vector<size_t> places;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!grads[i].defined() || !outputs_[i].requires_grad()) continue;
      const at::Tensor dy = ToTorch(grads[i]);
      bringing.Know(dy, grads[i]);
      outputs.push_back(outputs_[i]);
      gradients.push_back(dy.to(outputs_[i].scalar_type()));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!needs(static_cast<int>(i)) || !inputs_[i].requires_grad()) continue;
      wanted.push_back(inputs_[i]);
      places.push_back(i);
    }
    Tensors results(inputs_.size());
    if (outputs.empty() || wanted.empty()) return results;
    // torch's graph is always retained: whether Baton retains its own is known
    // only when Release is called.
    const TorchValues found = ::torch::autograd::grad(
        outputs, wanted, gradients, /*retain_graph=*/true,
        /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < places.size(); ++i)
      results[places[i]] = bringing.Bring(found[i]);
    return results;
  }

  const Device device_;
  TorchValues inputs_;  // values, then parameters
  TorchValues outputs_;
  std::vector<autograd::SavedTensor> watched_;
};

}  // namespace

TorchModule::TorchModule(std::shared_ptr<::torch::nn::Module> module,
                         TorchForward forward)
    : TorchPart(std::move(module), std::make_shared<TorchState>()),
      forward_(std::move(forward)) {}

const at::Tensor& TorchModule::Only(const TorchValues& values) {
  Require(values.size() == 1, kOp, "the module takes one value, got ",
          values.size());
  return values.front();
}

Variable TorchModule::Forward(const Variable& x) {
  std::vector<Variable> outputs = ForwardAll({x});
  Require(outputs.size() == 1, kOp, "the module gives ", outputs.size(),
          " values: call ForwardAll");
  return std::move(outputs.front());
}

std::vector<Variable> TorchModule::ForwardAll(
    const std::vector<Variable>& values) {
  return WithTorchErrors([&] { return Compute(values); });
}

std::vector<Variable> TorchModule::Compute(
    const std::vector<Variable>& values) {
  const TorchStream stream(device());
  TellTorch();
  std::vector<Variable> all = values;
  FromTorch bringing;
  for (const auto& [torch, baton] : state().parameters) {
    all.push_back(*baton);
    bringing.Know(torch, baton->tensor());
  }
  const bool recorded =
      !NoGrad::Active() && std::any_of(all.begin(), all.end(), [](auto& value) {
        return value.requires_grad();
      });
  TorchValues inputs;
  for (const Variable& value : values) {
    inputs.push_back(ToTorch(value.tensor()));
    bringing.Know(inputs.back(), value.tensor());
    if (recorded && value.requires_grad()) inputs.back().requires_grad_();
  }
  const at::AutoGradMode mode(recorded);
  TorchValues outputs = CallTorch(inputs);
  Tensors results;
  for (const at::Tensor& output : outputs)
    results.push_back(bringing.Bring(output));
  if (!recorded) return {results.begin(), results.end()};
  return Record(all, std::move(inputs), std::move(outputs), results);
}

std::vector<Variable> TorchModule::Record(const std::vector<Variable>& values,
                                          TorchValues inputs,
                                          TorchValues outputs,
                                          const Tensors& results) const {
  for (const auto& parameter : state().parameters)
    inputs.push_back(parameter.torch);
  std::vector<bool> has_gradient;
  for (const at::Tensor& output : outputs)
    has_gradient.push_back(output.defined() && output.requires_grad());
  Tensors watched = TensorsOf(values);
  watched.insert(watched.end(), results.begin(), results.end());
  const auto node = std::make_shared<TorchNode>(device(), std::move(inputs),
                                                std::move(outputs), watched);
  std::vector<autograd::Edge> edges;
  for (const Variable& value : values) edges.push_back(value.gradient_edge());
  node->SetEdges(std::move(edges));
  node->SetNumOutputs(static_cast<int>(results.size()));
  std::vector<Variable> recorded;
  for (size_t i = 0; i < results.size(); ++i) {
    recorded.push_back(has_gradient[i]
                           ? Variable(results[i], {node, static_cast<int>(i)})
                           : Variable(results[i]));
  }
  return recorded;
}

TorchValues TorchModule::CallTorch(const TorchValues& inputs) const {
  UseState();
  const auto version = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor._version() : 0;
  };
  std::vector<int64_t> before;
  for (const at::Tensor& input : inputs) before.push_back(version(input));
  std::vector<int64_t> buffers_before;
  for (const auto& buffer : state().buffers)
    buffers_before.push_back(version(buffer.torch));
  TorchValues outputs = forward_(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Require(version(inputs[i]) == before[i], kOp, "the module wrote its input ",
            i, " in place");
  }
  for (size_t i = 0; i < buffers_before.size(); ++i) {
    const auto& [torch, baton] = state().buffers[i];
    if (version(torch) != buffers_before[i]) baton->BumpVersion();
  }
  return outputs;
}

// Makes earlier uses of parameters and buffers on other streams precede
// torch's, which run on the current stream.
void TorchModule::UseState() const {
  const Stream stream = CurrentStream(device());
  for (const auto& parameter : state().parameters) {
    const auto& use = parameter.baton->tensor().storage()->use();
    if (use != nullptr) use->Read(stream);
  }
  for (const auto& buffer : state().buffers) {
    const auto& storage = buffer.baton->storage();
    if (is_training()) storage->PrepareWrite();
    if (storage->use() == nullptr) continue;
    if (is_training()) {
      storage->use()->Write(stream);
    } else {
      storage->use()->Read(stream);
    }
  }
}

}  // namespace baton::nn
