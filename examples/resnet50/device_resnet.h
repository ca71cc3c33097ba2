// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/resnet50/machine.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/resnet50/settings.h"
#include "examples/support/pipeline_settings.h"
#include "examples/support/trainable.h"
#include "rpc/agent.h"

namespace baton::examples {

// A ResNet on the devices of this process, which is a cluster of its own:
// whole, split or pipelined. Confined to one thread.
class DeviceResNet final : public Trainable {
 public:
  // A variant that is not cut has the whole model on the first device; one that
  // is not pipelined takes whole batches. Returns InvalidArgument if the
  // schedule cannot place the stages on the devices.
  static absl::StatusOr<std::unique_ptr<DeviceResNet>> Make(
      const Settings& settings, const Machine& machine, const Variant& variant);

  absl::StatusOr<double> TrainStep(const TrainingBatch& batch) override {
    return model_->TrainStep(batch);
  }
  size_t most_under_way() const override { return model_->most_under_way(); }
  absl::Status BeginStep(const TrainingBatch& batch) override {
    return model_->BeginStep(batch);
  }
  absl::StatusOr<double> AwaitStep() override { return model_->AwaitStep(); }
  // Copies the batch to the first device.
  absl::StatusOr<TrainingBatch> Place(const TrainingBatch& batch) override {
    return model_->Place(batch);
  }
  int warm_up_steps() const override { return model_->warm_up_steps(); }
  std::vector<Detail> Details() const override;
  const dist::Schedule* schedule() const override { return model_->schedule(); }

  // Writes a trace of one step. Returns how long its copies took, and which
  // share of that time the step hid.
  absl::StatusOr<std::string> TraceStep(const TrainingBatch& batch,
                                        const std::string& path);

 private:
  DeviceResNet(std::vector<Device> devices, int64_t micro_batches)
      : devices_(std::move(devices)), micro_batches_(micro_batches) {}

  const std::vector<Device> devices_;
  const int64_t micro_batches_;
  std::unique_ptr<rpc::Agent> agent_;
  std::unique_ptr<RemoteResNet> model_;
};

}  // namespace baton::examples
