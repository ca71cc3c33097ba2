// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "autograd/variable.h"
#include "core/tensor.h"
#include "models/nn/module.h"

namespace baton::nn {

class TorchPart;

// What a torch module and all below it have, in the order in which Baton's side
// registered it; what is there twice is listed once.
struct TorchState {
  struct Parameter {
    at::Tensor torch;
    Variable* baton = nullptr;
  };
  struct Buffer {
    at::Tensor torch;
    Tensor* baton = nullptr;
  };
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<TorchPart*> parts;  // each before those below it
};

// Baton's side of one torch module: parameters and buffers in the memory of
// torch's, children for its children, under the same names. A parameter that
// torch does not train requires no grad here. Thread-compatible.
class TorchPart : public Module,
                  public std::enable_shared_from_this<TorchPart> {
 public:
  // Adds to `state` what there is. Throws Error for a parameter or buffer that
  // Baton has no tensor for.
  TorchPart(std::shared_ptr<::torch::nn::Module> module,
            std::shared_ptr<TorchState> state);

 protected:
  const TorchState& state() const { return *state_; }
  // Tells torch of all parts what was done on Baton's side since: modes, other
  // tensors in the place of parameters and buffers, and what requires grad.
  void TellTorch() const;

 private:
  void AddParameters();
  void AddBuffers();
  void AddParts();

  const std::shared_ptr<::torch::nn::Module> module_;
  const std::shared_ptr<TorchState> state_;  // of the root
};

}  // namespace baton::nn
