// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "autograd/variable.h"
#include "core/graph.h"
#include "models/nn/recordings.h"

namespace baton::nn {

// A whole training step that GPUs replay as one graph: forward, loss, backward
// and optimizer step run thousands of kernels with one launch.
//
//   nn::GraphedStep step(
//       [&](const std::vector<Tensor>& batch) -> std::vector<Tensor> {
//         const Variable loss =
//             nn::CrossEntropy(model.Forward(batch[0]), batch[1]);
//         loss.Backward();
//         sgd.Step();
//         return {loss.tensor()};
//       },
//       {Device::Cuda(0)}, model.Parameters());
//   for (...) loss = step.Run({images, labels})[0];
//
// The first calls on inputs of one shape, dtype and device run the function
// normally. Then one call records it, and that and later calls replay the
// recording (see core/graph.h: the function must not read values back, and
// whatever it does on the host is not repeated). Calls on other inputs, such as
// a last, smaller batch, with an input on the CPU, or without a GPU, run the
// function normally. Learning rates, step counts and random numbers advance
// during replays; values loaded in between are used. Moving or casting the
// module drops the recordings.
//
// Each call first drops the parameters' gradients; afterwards, replayed or not,
// they are those of this call. The results and gradients of a replay keep their
// values until the next call. Thread-compatible.
class GraphedStep {
 public:
  using Function =
      std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

  // `devices` are all that the function uses; if the CPU is among them, nothing
  // is recorded. `parameters` are those whose gradients it computes.
  GraphedStep(Function function, std::vector<Device> devices,
              std::vector<Variable> parameters,
              const RecordingOptions& options = {});

  std::vector<Tensor> Run(const std::vector<Tensor>& inputs);

  int64_t replays() const { return replays_; }  // replayed calls so far
  // The sizes of the last replayed graph; 0 before the first.
  int64_t kernels() const { return kernels_; }
  int64_t nodes() const { return nodes_; }

 private:
  struct Recording {
    std::vector<Tensor> inputs;
    std::vector<Tensor> results;
    std::vector<Gradient> gradients;  // of the parameters; some undefined
    std::unique_ptr<Graph> graph;
  };

  bool Recordable(const std::vector<Tensor>& inputs) const;
  std::shared_ptr<Recording> Record(const std::vector<Tensor>& inputs);
  std::vector<Tensor> Replay(const Recording& recording,
                             const std::vector<Tensor>& inputs);
  void DropGradients();

  const Function function_;
  const std::vector<Device> devices_;
  std::vector<Variable> parameters_;
  Recordings<Recording> recordings_;
  int64_t replays_ = 0;
  int64_t kernels_ = 0;
  int64_t nodes_ = 0;
};

}  // namespace baton::nn
