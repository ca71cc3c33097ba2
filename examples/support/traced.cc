// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/traced.h"

#include <utility>
#include <vector>

#include "core/status.h"
#include "tools/view/cluster_trace.h"

namespace baton::examples {
namespace {

class Traced final : public Trainable {
 public:
  Traced(std::unique_ptr<Trainable> model, rpc::Agent& agent, std::string path)
      : model_(std::move(model)), agent_(agent), path_(std::move(path)) {}

  absl::StatusOr<double> TrainStep(const TrainingBatch& batch) override {
    if (++steps_ != warm_up_steps()) return model_->TrainStep(batch);
    double loss = 0;
    RETURN_IF_ERROR(tools::WriteTraceOf(agent_, path_, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(loss, model_->TrainStep(batch));
      return absl::OkStatus();
    }));
    return loss;
  }
  size_t most_under_way() const override {
    return steps_ < warm_up_steps() ? 1 : model_->most_under_way();
  }
  absl::Status BeginStep(const TrainingBatch& batch) override {
    ended_here_ = steps_ < warm_up_steps();
    return ended_here_ ? Trainable::BeginStep(batch) : model_->BeginStep(batch);
  }
  absl::StatusOr<double> AwaitStep() override {
    return ended_here_ ? Trainable::AwaitStep() : model_->AwaitStep();
  }
  absl::StatusOr<TrainingBatch> Place(const TrainingBatch& batch) override {
    return model_->Place(batch);
  }
  int warm_up_steps() const override { return model_->warm_up_steps() + 1; }
  std::vector<Detail> Details() const override { return model_->Details(); }
  absl::StatusOr<std::vector<dist::PipelineLink>> Links() const override {
    return model_->Links();
  }
  const dist::Schedule* schedule() const override { return model_->schedule(); }

 private:
  const std::unique_ptr<Trainable> model_;
  rpc::Agent& agent_;
  const std::string path_;
  int steps_ = 0;
  bool ended_here_ = false;  // BeginStep ran the whole last step
};

}  // namespace

std::unique_ptr<Trainable> WithTrace(std::unique_ptr<Trainable> model,
                                     rpc::Agent& agent,
                                     const std::string& path) {
  if (path.empty()) return model;
  return std::make_unique<Traced>(std::move(model), agent, path);
}

}  // namespace baton::examples
