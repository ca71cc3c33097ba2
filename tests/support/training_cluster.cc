// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/training_cluster.h"

#include <gtest/gtest.h>

#include <utility>

#include "autograd/distributed/context.h"
#include "tests/support/test_device.h"

namespace baton::testing {
namespace {

const std::vector<std::string> kNames = {"alice", "bob", "carol", "dave"};

ClusterOptions OptionsFor(const std::set<std::string>& names,
                          TrainingCluster::AddTypes add_types,
                          TransportKind transports,
                          std::map<std::string, rpc::Compute> compute,
                          std::shared_ptr<rpc::FaultPlan> faults) {
  ClusterOptions options;
  options.faults = std::move(faults);
  options.transports = MakerOf(transports, test::TestDevice());
  options.compute = std::move(compute);
  for (const std::string& name : names)
    options.compute.try_emplace(name, rpc::Compute{test::TestDevice()});
  options.names.assign(names.begin(), names.end());
  options.fill = [add_types = std::move(add_types)](rpc::Registry& registry) {
    dist::Register(registry);
    add_types(registry);
  };
  options.on_start = dist::Attach;
  return options;
}

}  // namespace

TrainingCluster::TrainingCluster(size_t workers, AddTypes add_types,
                                 TransportKind transports,
                                 std::map<std::string, rpc::Compute> compute,
                                 std::shared_ptr<rpc::FaultPlan> faults)
    : alive_(kNames.begin(), kNames.begin() + static_cast<int64_t>(workers)),
      cluster_(OptionsFor(alive_, std::move(add_types), transports,
                          std::move(compute), std::move(faults))) {}

TrainingCluster::~TrainingCluster() {
  EXPECT_TRUE(NoContextsLeft());
  for (const std::string& name : alive_) {
    EXPECT_TRUE(cluster_[name].AwaitIdle(std::chrono::seconds(5)))
        << cluster_[name].GetDebugInfo().ToString();
  }
}

void TrainingCluster::Kill(const std::string& name) {
  rpc::ShutdownOptions now;
  now.mode = rpc::ShutdownOptions::Mode::kNow;
  cluster_[name].Shutdown(now).IgnoreError();
  alive_.erase(name);
}

bool TrainingCluster::NoContextsLeft() {
  Promise<void> never;
  for (int attempt = 0; attempt < 500; ++attempt) {
    size_t open = 0;
    for (const std::string& name : alive_) {
      open += dist::OpenContexts(cluster_[name]).size();
    }
    if (open == 0) return true;
    never.future().Await(std::chrono::milliseconds(10)).IgnoreError();
  }
  return false;
}

}  // namespace baton::testing
