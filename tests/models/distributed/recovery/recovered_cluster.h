// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/precision.h"
#include "models/distributed/checkpoint.h"
#include "models/distributed/recovery.h"
#include "tests/models/distributed/recovery/recovered_stages.h"
#include "tests/support/fault.h"
#include "tests/support/local_cluster.h"

namespace baton::dist {

inline constexpr int kSteps = 8;
inline const std::vector<std::string> kStages = {"one", "two", "three"};

// Pipelines of workers in this process.
class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() {
    SetDeterministic(true);
    wanted_ = LossesOf(kStages);
  }
  ~RecoveryTest() override { SetDeterministic(false); }

  static testing::ClusterOptions OptionsOf(std::vector<std::string> workers) {
    testing::ClusterOptions options;
    workers.insert(workers.begin(), "trainer");
    options.names = std::move(workers);
    options.fill = [](rpc::Registry& registry) {
      RegisterProcessStages(registry);
      RegisterCheckpoints(registry);
    };
    options.on_start = Attach;
    return options;
  }
  testing::ClusterOptions WithFaults(std::vector<std::string> workers) const {
    testing::ClusterOptions options = OptionsOf(std::move(workers));
    options.faults = faults_;
    return options;
  }
  // Undisturbed.
  static std::vector<double> LossesOf(const std::vector<std::string>& workers) {
    testing::LocalCluster cluster(OptionsOf(workers));
    RecoveredStages stages(cluster["trainer"], workers);
    const auto pipeline = stages.Pipeline();
    return Losses(*pipeline, {});
  }
  // `before`: what is done before these steps.
  static std::vector<double> Losses(
      RecoverablePipeline& pipeline,
      const std::map<int, std::function<void()>>& before) {
    std::vector<double> losses;
    for (int step = 0; step < kSteps; ++step) {
      const auto found = before.find(step);
      if (found != before.end()) found->second();
      losses.push_back(RecoveredStages::LossOf(pipeline, step));
    }
    return losses;
  }
  RecoveryOptions Recorded() {
    RecoveryOptions options;
    options.on_recovery = [this](const Recovery& recovery) {
      recoveries_.push_back(recovery);
    };
    return options;
  }

  const std::shared_ptr<rpc::FaultPlan> faults_ =
      std::make_shared<rpc::FaultPlan>();
  std::vector<double> wanted_;
  std::vector<Recovery> recoveries_;
};

}  // namespace baton::dist
