// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/resnet50/settings.h"
#include "examples/resnet50/trainable.h"
#include "models/distributed/checkpoint.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/resnet_stage.h"
#include "optim/distributed/optimizer.h"
#include "rpc/agent.h"

namespace baton::examples {

// What every process of the ResNet programs can be asked for.
rpc::Registry MakeRegistry();

// A ResNet whose stages live at workers, trained as a pipeline. Must not
// outlive the agent. Confined to one thread.
class RemoteResNet final : public Trainable {
 public:
  struct Options {
    std::vector<std::string> cuts;
    int64_t split_size = 0;   // 0: the whole batch at once
    int compute_threads = 0;  // of each stage; 0: the worker's own setting
  };
  // Stages are placed as the schedule needs them, one a worker where there are
  // enough; errors name the worker that could not make its stage.
  static absl::StatusOr<std::unique_ptr<RemoteResNet>> Make(
      rpc::Agent& agent, const std::vector<std::string>& workers,
      const Settings& settings, const Options& options);

  absl::StatusOr<double> TrainStep(const TrainingBatch& batch) override;
  // "auto" has its order after the second.
  int warm_up_steps() const override;
  std::vector<Detail> Details() const override;
  const dist::Schedule* schedule() const override;
  absl::StatusOr<dist::Pipeline::EvalResult> Evaluate(
      const TrainingBatch& batch);
  void set_lr(double lr) { sgd_->set_lr(lr); }

  // Of weights, under torchvision's names, and optimizer. Outlived by this.
  absl::StatusOr<std::unique_ptr<dist::Checkpointer>> MakeCheckpointer(
      const CheckpointOptions& options);

 private:
  explicit RemoteResNet(rpc::Agent& agent) : agent_(agent) {}

  bool pipelined() const { return pipeline_->options().split_size > 0; }

  rpc::Agent& agent_;
  std::vector<dist::Module<dist::ResNetStage>> stages_;
  std::unique_ptr<dist::Pipeline> pipeline_;
  std::unique_ptr<dist::Optimizer<optim::Sgd>> sgd_;
  int steps_ = 0;
  double bubbles_ = 0;  // sum of the steps after the warm-up
};

}  // namespace baton::examples
