// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/graphed_step.h"

#include <algorithm>
#include <utility>

#include "core/storage.h"

namespace baton::nn {

GraphedStep::GraphedStep(Function function, std::vector<Device> devices,
                         std::vector<Variable> parameters,
                         const RecordingOptions& options)
    : function_(std::move(function)),
      devices_(std::move(devices)),
      parameters_(std::move(parameters)),
      recordings_(options) {
  Require(!devices_.empty(), "graphed_step", "no device is named");
}

std::vector<Tensor> GraphedStep::Run(const std::vector<Tensor>& inputs) {
  DropGradients();
  if (!Recordable(inputs)) return function_(inputs);
  const auto recording = recordings_.For(KindOf(inputs), parameters_,
                                         [&] { return Record(inputs); });
  return recording ? Replay(*recording, inputs) : function_(inputs);
}

bool GraphedStep::Recordable(const std::vector<Tensor>& inputs) const {
  const auto on_gpu = [](Device device) { return device.is_cuda(); };
  return std::all_of(devices_.begin(), devices_.end(), on_gpu) &&
         std::all_of(inputs.begin(), inputs.end(), [](const Tensor& x) {
           return x.defined() && x.device().is_cuda();
         });
}

std::shared_ptr<GraphedStep::Recording> GraphedStep::Record(
    const std::vector<Tensor>& inputs) {
  auto recording = std::make_shared<Recording>();
  for (const Tensor& x : inputs)
    recording->inputs.push_back(Tensor::EmptyLike(x));
  // The graph allocates its own memory, so memory that the normal calls have
  // cached can be released.
  for (Device device : devices_) {
    Synchronize(device);
    ReleaseCachedGpuMemory(device);
  }
  recording->graph = std::make_unique<Graph>(Graph::Record(
      devices_, [&] { recording->results = function_(recording->inputs); }));
  for (const Variable& parameter : parameters_)
    recording->gradients.push_back(parameter.gradient());
  return recording;
}

std::vector<Tensor> GraphedStep::Replay(const Recording& recording,
                                        const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    recording.inputs[i].CopyFrom(inputs[i]);
  recording.graph->Replay();
  for (size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].set_grad(recording.gradients[i]);
  ++replays_;
  kernels_ = recording.graph->kernels();
  nodes_ = recording.graph->nodes();
  return recording.results;
}

void GraphedStep::DropGradients() {
  for (Variable& parameter : parameters_) parameter.ZeroGrad();
}

}  // namespace baton::nn
