// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/executor.h"
#include "examples/resnet50/settings.h"
#include "examples/support/trainable.h"
#include "optim/any.h"

namespace baton::examples {

// A ResNet in this process, without RPC, whose stages run one after the other:
// the baseline for the split over workers. Each stage computes on its own
// thread with an equal share of the cores, as if it had a device of its own.
// Confined to one thread.
class LocalResNet final : public Trainable {
 public:
  // If `cut` is false, the whole model is on the first device.
  static absl::StatusOr<std::unique_ptr<LocalResNet>> Make(
      const Settings& settings, bool cut, int threads_per_stage);

  absl::StatusOr<double> TrainStep(const TrainingBatch& batch) override;

 private:
  struct Device {
    std::unique_ptr<models::ResNet> stage;
    std::unique_ptr<optim::Any> optimizer;
    Variable input;
    Variable output;
    std::unique_ptr<ThreadPool> thread;  // last: it uses the others
  };
  explicit LocalResNet(dist::Loss loss) : loss_(loss) {}

  Tensor Forward(Device& device, const Tensor& input) const;
  double LossAndItsGradient(Device& device, const Tensor& targets,
                            Tensor& gradient) const;
  Tensor Backward(Device& device, const Tensor& gradient) const;

  const dist::Loss loss_;
  std::vector<Device> devices_;
};

}  // namespace baton::examples
