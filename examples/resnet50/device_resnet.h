// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "examples/resnet50/experiment.h"
#include "examples/resnet50/machine.h"
#include "examples/resnet50/settings.h"
#include "examples/support/trainable.h"
#include "models/distributed/device_pipeline.h"
#include "models/nn/graphed_step.h"
#include "optim/any.h"
#include "optim/grad_scaler.h"

namespace baton::examples {

// A ResNet on GPUs, trained by one thread: whole, split or pipelined, plainly
// or as a recorded step. Confined to one thread.
class DeviceResNet final : public Trainable {
 public:
  // Not cut: the whole model on the first device. Not pipelined: whole batches.
  // FailedPrecondition where there are fewer devices than stages.
  static absl::StatusOr<std::unique_ptr<DeviceResNet>> Make(
      const Settings& settings, const Machine& machine, const Variant& variant);

  // Images to the first device, targets to the last.
  absl::StatusOr<TrainingBatch> Place(const TrainingBatch& batch) override;
  // Until all devices have ended it.
  absl::StatusOr<double> TrainStep(const TrainingBatch& batch) override;
  int warm_up_steps() const override;
  std::vector<Detail> Details() const override;
  const dist::Schedule* schedule() const override;

  // Writes the spans of a step, recorded where steps are; says how much of the
  // copies it hid.
  absl::StatusOr<std::string> TraceStep(const TrainingBatch& batch,
                                        const std::string& path);

 private:
  DeviceResNet(dist::DevicePipeline pipeline, const Settings& settings,
               bool graph);
  Tensor PlainStep(const TrainingBatch& batch,
                   dist::StepTrace* trace = nullptr);

  dist::DevicePipeline pipeline_;
  optim::Any optimizer_;
  std::unique_ptr<optim::GradScaler> scaler_;  // of f16
  std::unique_ptr<nn::GraphedStep> step_;      // null: plain
  int64_t micro_batches_ = 1;
  bool to_tune_ = false;                        // by the first batch
  std::optional<dist::PipelineTiming> timing_;  // of Tune
};

}  // namespace baton::examples
