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

// The parameters, buffers and modules of a torch module and all modules below
// it, in the order in which Baton registered them. One that occurs twice is
// listed once.
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

// Represents one torch module in Baton: its parameters and buffers share memory
// with torch's, and its children stand for torch's children, under the same
// names. A parameter that torch does not train does not require grad here
// either. Thread-compatible.
class TorchPart : public Module,
                  public std::enable_shared_from_this<TorchPart> {
 public:
  // Adds the module's parameters, buffers and children to `state`. Throws Error
  // if Baton has no dtype or layout for a parameter or buffer.
  TorchPart(std::shared_ptr<::torch::nn::Module> module,
            std::shared_ptr<TorchState> state);

 protected:
  const TorchState& state() const { return *state_; }
  // Applies changes that were made through Baton to all torch modules: training
  // mode, replaced parameters and buffers, and requires_grad.
  void TellTorch() const;

 private:
  void AddParameters();
  void AddBuffers();
  void AddParts();

  const std::shared_ptr<::torch::nn::Module> module_;
  const std::shared_ptr<TorchState> state_;  // shared with the root module
};

}  // namespace baton::nn
