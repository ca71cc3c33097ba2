// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/nn/module.h"
#include "models/nn/recordings.h"

namespace baton::nn {

// A module whose forward and backward a GPU replays as two graphs, within a
// step that is otherwise as it was; GraphedStep does more where the whole step
// can be recorded.
//
//   nn::Graphed model(std::make_shared<Encoder>(...));
//   nn::CrossEntropy(model.Forward(x), labels).Backward();
//
// After some forwards on inputs of one shape, dtype and device, in training and
// with gradients recorded, one records them, and that and later ones replay:
// inputs are copied in, outputs and all gradients are copied out, so they are
// the caller's as those of any module. The module runs as it is on other
// inputs, on the CPU, in eval mode, under NoGrad, within a recording of more,
// with hooks on its parameters, and while as many passes as the options allow
// wait for their backwards (or for their outputs to go), since each recording
// holds the activations of one. What the module does on the host happens no
// more during replays. One that cannot be recorded, as it reads values back or
// there is no memory for another pass, runs as it is, and a warning says why.
// Moving or casting it drops the recordings.
//
// The child is named "module". Thread-compatible.
class Graphed final : public Module {
 public:
  explicit Graphed(std::shared_ptr<Module> module,
                   const RecordingOptions& options = {});
  Variable Forward(const Variable& x) override;
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override;

  int64_t replays() const { return replays_; }  // forwards so far that were

 private:
  struct Pass;
  struct Recording;
  struct Passes;

  bool Recordable(const std::vector<Variable>& inputs) const;
  // Null where the forward is to run as it is.
  std::shared_ptr<Recording> Idle(const std::vector<Variable>& inputs,
                                  const std::vector<Variable>& parameters);
  std::shared_ptr<Recording> Record(const std::vector<Variable>& inputs,
                                    const std::vector<Variable>& parameters);
  std::vector<Variable> Replay(const std::shared_ptr<Recording>& recording,
                               const std::vector<Variable>& inputs,
                               const std::vector<Variable>& parameters);

  Module& module_;
  const int most_passes_;
  Recordings<Passes> recordings_;
  int64_t replays_ = 0;
};

}  // namespace baton::nn
