// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/nn/module.h"
#include "models/nn/recordings.h"

namespace baton::nn {

// A module whose forward and backward a GPU replays as two graphs, while the
// rest of the training step runs as usual. If the whole step can be recorded,
// GraphedStep saves more.
//
//   nn::Graphed model(std::make_shared<Encoder>(...));
//   nn::CrossEntropy(model.Forward(x), labels).Backward();
//
// After some forwards on inputs of one shape, dtype and device, in training
// mode and with gradients recorded, one forward records the graphs, and that
// and later ones replay them. Inputs are copied in, and outputs and all
// gradients are copied out, so the caller owns them as those of any module. The
// module runs normally, without a graph, on other inputs, on the CPU, in eval
// mode, under NoGrad, within another recording, if its parameters have hooks,
// and while as many passes as the options allow wait for their backward (or
// until their outputs are dropped), since each recording holds the activations
// of one pass. Whatever the module does on the host is not repeated by replays.
// A module that cannot be recorded, because it reads values back or there is no
// memory for another pass, runs normally, and a warning says why. Moving or
// casting the module drops the recordings.
//
// The child is named "module". Thread-compatible.
class Graphed final : public Module {
 public:
  explicit Graphed(std::shared_ptr<Module> module,
                   const RecordingOptions& options = {});
  Variable Forward(const Variable& x) override;
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override;

  int64_t replays() const { return replays_; }  // replayed forwards so far

 private:
  struct Pass;
  struct Recording;
  struct Passes;

  bool Recordable(const std::vector<Variable>& inputs) const;
  // Returns null if the forward must run without a graph.
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
