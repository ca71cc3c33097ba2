// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "examples/resnet50/experiment.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/support/device_cluster.h"

namespace baton::examples {

inline Settings SmallSettings() {
  Settings settings;
  settings.model = {.depth = 18, .num_classes = 4, .width = 16};
  settings.cuts = {"layer2"};
  settings.variants = {"single", "split", "pipelined"};
  settings.split_sizes = {4, 8};
  settings.batch = 8;
  settings.image = 32;
  settings.batches = 2;
  settings.repeat = 2;
  settings.stepping.optimizer.lr = 0.01;
  return settings;
}

class ResNetPrograms : public ::testing::Test {
 protected:
  void SetUp() override { cluster_ = DeviceCluster::Make(2).value(); }
  void TearDown() override {
    const absl::Status status = cluster_->Shutdown();
    EXPECT_TRUE(status.ok()) << status;
  }
  // One thread a stage: oneDNN's sums depend on how many there are.
  std::unique_ptr<RemoteResNet> Remote(const Settings& settings,
                                       int64_t split_size) {
    return MakeRemoteResNet(cluster_->trainer(), cluster_->workers(), settings,
                            {.cuts = settings.cuts,
                             .split_size = split_size,
                             .compute_threads = 1})
        .value();
  }
  std::unique_ptr<DeviceCluster> cluster_;
};

}  // namespace baton::examples
