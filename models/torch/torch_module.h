// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "autograd/variable.h"
#include "models/torch/torch_part.h"

// Needs a tree with BATON_TORCH=ON (docs/torch.md).
namespace baton::nn {

// Wraps a torch::nn::Module as a module of Baton. Torch computes forward and
// backward directly in the memory of Baton's tensors, without copies; Baton
// does everything else.
//
//   struct Front final : nn::TorchModule {
//     Front() : TorchModule(torch::nn::Sequential(torch::nn::Linear(8, 4),
//                                                 torch::nn::Tanh())) {}
//     using Exports = rpc::Methods<rpc::kConstructor<>, &Front::Forward>;
//   };
//
// Parameters and buffers have torch's names, so both libraries can load a saved
// state. Baton records each forward as one node of its graph, whose backward
// runs torch's autograd; this throws Error if an input, an output or a
// parameter was written in between. To, LowerPrecision, training mode and
// requires_grad take effect on the torch module at its next forward. Dropout
// draws from torch's own generator, so a forward that is run again (RerunScope)
// draws other numbers. On GPUs torch uses Baton's current stream, and the
// forward cannot be recorded (core/graph.h). Thread-compatible; Forward counts
// as a write while training.
class TorchModule : public TorchPart {
 public:
  using TorchValues = std::vector<at::Tensor>;
  using TorchForward = std::function<TorchValues(const TorchValues&)>;

  // For modules with several inputs or outputs: `forward` runs `module` on the
  // inputs and returns the outputs. It must not write to the inputs.
  TorchModule(std::shared_ptr<::torch::nn::Module> module,
              TorchForward forward);
  // For a module whose forward takes one tensor and returns one.
  template <typename M>
  explicit TorchModule(const std::shared_ptr<M>& module)
      : TorchModule(module, [module = module.get()](const TorchValues& values) {
          return TorchValues{module->forward(Only(values))};
        }) {}
  template <typename M>
  explicit TorchModule(const ::torch::nn::ModuleHolder<M>& module)
      : TorchModule(module.ptr()) {}

  // Takes and returns one value. Throws Error if the torch module throws or
  // returns several values.
  Variable Forward(const Variable& x) override;
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override;

 private:
  static const at::Tensor& Only(const TorchValues& values);
  std::vector<Variable> Compute(const std::vector<Variable>& values);
  TorchValues CallTorch(const TorchValues& inputs) const;
  void UseState() const;
  // `values` are the inputs, followed by all parameters.
  std::vector<Variable> Record(const std::vector<Variable>& values,
                               TorchValues inputs, TorchValues outputs,
                               const std::vector<Tensor>& results) const;

  const TorchForward forward_;
};

}  // namespace baton::nn
