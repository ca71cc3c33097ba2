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

// A torch::nn::Module as a module of Baton: it computes forward and backward,
// in the memory of Baton's tensors and without copies, and Baton does the rest.
//
//   struct Front final : nn::TorchModule {
//     Front() : TorchModule(torch::nn::Sequential(torch::nn::Linear(8, 4),
//                                                 torch::nn::Tanh())) {}
//     static std::unique_ptr<Front> Make() { return std::make_unique<Front>();
//     } using Exports = rpc::Methods<&Front::Make, &Front::Forward>;
//   };
//
// Parameters and buffers have torch's names, so that states fit both. A forward
// that is recorded is one node of the graph, and its backward is torch's
// autograd; it throws Error where an input, an output or a parameter was
// written in between. To, LowerPrecision, modes and requires_grad hold for the
// torch module from the next forward on. What it draws (dropout) is from
// torch's own generator, so that a forward that is run again (RerunScope) draws
// other numbers. On GPUs torch works on Baton's current stream, and its forward
// is not to be recorded (core/graph.h).
// Thread-compatible; Forward counts as a write while training.
class TorchModule : public TorchPart {
 public:
  using TorchValues = std::vector<at::Tensor>;
  using TorchForward = std::function<TorchValues(const TorchValues&)>;

  // `forward` is what `module` computes of all that it takes: for those of
  // several values. It must not write what it is given.
  TorchModule(std::shared_ptr<::torch::nn::Module> module,
              TorchForward forward);
  // A module whose forward takes and gives one tensor.
  template <typename M>
  explicit TorchModule(const std::shared_ptr<M>& module)
      : TorchModule(module, [module = module.get()](const TorchValues& values) {
          return TorchValues{module->forward(Only(values))};
        }) {}
  template <typename M>
  explicit TorchModule(const ::torch::nn::ModuleHolder<M>& module)
      : TorchModule(module.ptr()) {}

  // Of one value; throws Error where the torch module throws or gives several.
  Variable Forward(const Variable& x) override;
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override;

 private:
  static const at::Tensor& Only(const TorchValues& values);
  std::vector<Variable> Compute(const std::vector<Variable>& values);
  TorchValues CallTorch(const TorchValues& inputs) const;
  void UseState() const;
  // `values` are those that were given, and all parameters.
  std::vector<Variable> Record(const std::vector<Variable>& values,
                               TorchValues inputs, TorchValues outputs,
                               const std::vector<Tensor>& results) const;

  const TorchForward forward_;
};

}  // namespace baton::nn
