// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "examples/resnet50/trainable.h"
#include "rpc/agent.h"

namespace baton::examples {

// A model whose last warm-up step, which is not timed, is traced at all workers
// of the agent's cluster into the file `path`. Confined to one thread.
class Traced final : public Trainable {
 public:
  Traced(std::unique_ptr<Trainable> model, rpc::Agent& agent, std::string path)
      : model_(std::move(model)), agent_(agent), path_(std::move(path)) {}

  absl::StatusOr<double> TrainStep(const TrainingBatch& batch) override;
  absl::StatusOr<TrainingBatch> Place(const TrainingBatch& batch) override {
    return model_->Place(batch);
  }
  int warm_up_steps() const override { return model_->warm_up_steps() + 1; }
  std::vector<Detail> Details() const override { return model_->Details(); }
  const dist::Schedule* schedule() const override { return model_->schedule(); }

 private:
  const std::unique_ptr<Trainable> model_;
  rpc::Agent& agent_;
  const std::string path_;
  int steps_ = 0;
};

}  // namespace baton::examples
