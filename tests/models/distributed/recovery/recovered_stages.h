// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "models/distributed/recovery.h"
#include "tests/models/distributed/process_devices.h"
#include "tests/models/distributed/process_stages.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"
#include "tests/support/toy_stages.h"

namespace baton::dist {

// Noisy stages, which have running statistics and draw random numbers, at
// workers, and an optimizer with momentum: what they learn depends on all that
// a recovery must bring back. Confined to one thread.
class RecoveredStages {
 public:
  static constexpr int64_t kWidth = 6, kRows = 12;
  // By a recovery, where another trainer may take the training up.
  static constexpr int64_t kMostRedone = 4;

  RecoveredStages(rpc::Agent& agent, const std::vector<std::string>& workers)
      : agent_(agent) {
    std::vector<ParameterSource> sources;
    for (const std::string& worker : workers) {
      const auto seed = static_cast<uint64_t>(modules_.size()) + 7;
      const auto make = [&agent, seed](const rpc::Target& at) {
        return Module<testing::NoisyStage>::Create(agent, at, kWidth, Drop(),
                                                   seed);
      };
      const auto made = make(worker).Await();
      EXPECT_THAT(made, testing::IsOk());
      modules_.push_back(*made);
      recovered_.emplace_back(*made, make);
      sources.push_back(made->ref());
    }
    sgd_ = std::make_unique<Optimizer<optim::Sgd>>(
        agent, optim::SgdOptions{.lr = 0.1, .momentum = 0.9}, sources);
  }

  absl::StatusOr<std::unique_ptr<RecoverablePipeline>> MakePipeline(
      const RecoveryOptions& recovery) {
    PipelineOptions options;
    options.split_size = 4;
    options.step_timeout = std::chrono::seconds(60);
    return RecoverablePipeline::Make(agent_, options, recovery, recovered_,
                                     *sgd_);
  }
  std::unique_ptr<RecoverablePipeline> Pipeline(
      const RecoveryOptions& recovery = {}) {
    auto made = MakePipeline(recovery);
    EXPECT_THAT(made, testing::IsOk());
    return made.ok() ? *std::move(made) : nullptr;
  }
  // Inputs and targets that the number gives.
  static std::pair<Tensor, Tensor> BatchOf(int step) {
    Generator generator(static_cast<uint64_t>(step) + 11);
    const Tensor x = RandNormal({kRows, kWidth}, generator);
    return {x, RandInt(0, kWidth, {kRows}, generator)};
  }
  static absl::StatusOr<dist::Pipeline::StepResult> Step(
      RecoverablePipeline& pipeline, int step) {
    const auto [inputs, targets] = BatchOf(step);
    return pipeline.Step(inputs, targets);
  }
  static absl::Status BeginStep(RecoverablePipeline& pipeline, int step) {
    const auto [inputs, targets] = BatchOf(step);
    return pipeline.BeginStep(inputs, targets);
  }
  // Of that; -1 after an error.
  static double LossOf(RecoverablePipeline& pipeline, int step) {
    const auto result = Step(pipeline, step);
    EXPECT_THAT(result, testing::IsOk());
    return result.ok() ? result->loss : -1;
  }
  // One more; false after an error.
  static bool AddLoss(RecoverablePipeline& pipeline,
                      std::vector<double>& losses) {
    losses.push_back(LossOf(pipeline, static_cast<int>(losses.size())));
    return losses.back() >= 0;
  }

  const std::vector<Module<testing::NoisyStage>>& modules() const {
    return modules_;
  }
  Optimizer<optim::Sgd>& sgd() { return *sgd_; }

 private:
  rpc::Agent& agent_;
  std::vector<Module<testing::NoisyStage>> modules_;
  std::vector<RecoveredModule> recovered_;
  std::unique_ptr<Optimizer<optim::Sgd>> sgd_;
};

}  // namespace baton::dist
