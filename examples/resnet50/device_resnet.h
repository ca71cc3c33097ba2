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

// A ResNet on GPUs that one thread trains: whole, split or pipelined, launched
// kernel by kernel or as a recorded step. Confined to one thread.
class DeviceResNet final : public Trainable {
 public:
  // A variant that is not cut has the whole model on the first device; one that
  // is not pipelined takes whole batches. Returns FailedPrecondition if there
  // are fewer devices than stages.
  static absl::StatusOr<std::unique_ptr<DeviceResNet>> Make(
      const Settings& settings, const Machine& machine, const Variant& variant);

  // Copies images to the first device and targets to the last.
  absl::StatusOr<TrainingBatch> Place(const TrainingBatch& batch) override;
  // Returns when all devices have finished the step.
  absl::StatusOr<double> TrainStep(const TrainingBatch& batch) override;
  int warm_up_steps() const override;
  std::vector<Detail> Details() const override;
  const dist::Schedule* schedule() const override;

  // Writes a trace of one step, which is recorded if steps are. Returns which
  // share of the copies' time the step hid.
  absl::StatusOr<std::string> TraceStep(const TrainingBatch& batch,
                                        const std::string& path);

 private:
  DeviceResNet(dist::DevicePipeline pipeline, const Settings& settings,
               bool graph);
  Tensor PlainStep(const TrainingBatch& batch,
                   dist::StepTrace* trace = nullptr);

  dist::DevicePipeline pipeline_;
  optim::Any optimizer_;
  std::unique_ptr<optim::GradScaler> scaler_;  // for f16
  std::unique_ptr<nn::GraphedStep> step_;      // null: steps are not recorded
  int64_t micro_batches_ = 1;
  bool to_tune_ = false;  // the first batch tunes the schedule
  std::optional<dist::PipelineTiming> timing_;  // result of Tune
};

}  // namespace baton::examples
