// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/step_threads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/distributed/server/shard_state.h"

namespace baton::dist {
namespace {

TEST(StepThreads, AreAShareOfHalfOfTheCoresAtLeast) {
  EXPECT_EQ(StepThreads({}, {.threads = 1, .cores = 16, .servers = 1}), 8);
  EXPECT_EQ(StepThreads({}, {.threads = 1, .cores = 16, .servers = 2}), 4);
  EXPECT_EQ(StepThreads({}, {.threads = 1, .cores = 2, .servers = 2}), 1);
  EXPECT_EQ(StepThreads({}, {.threads = 6, .cores = 16, .servers = 4}), 6);
}

TEST(StepThreads, AreSixteenAtMostOfManyCores) {
  EXPECT_EQ(StepThreads({}, {.threads = 7, .cores = 64, .servers = 1}), 16);
  EXPECT_EQ(StepThreads({}, {.threads = 7, .cores = 64, .servers = 4}), 8);
  EXPECT_EQ(StepThreads({}, {.threads = 32, .cores = 64, .servers = 1}), 32);
}

TEST(StepThreads, AreAsManyAsTheOptionsSay) {
  EXPECT_EQ(StepThreads({.compute_threads = 3},
                        {.threads = 6, .cores = 16, .servers = 2}),
            3);
}

int ServersHere(const std::vector<std::string>& cores) {
  ShardSpec spec;
  spec.image.values = Tensor::Ones({4});
  spec.cores = cores;
  return ShardState(spec, Device::Cpu()).servers_here();
}

TEST(StepThreads, AreNotSharedWithServersOnOtherCores) {
  EXPECT_EQ(ServersHere({CoresHere(), "elsewhere", CoresHere()}), 2);
  EXPECT_EQ(ServersHere({CoresHere(), "elsewhere"}), 1);
  EXPECT_EQ(ServersHere({}), 1);
}

}  // namespace
}  // namespace baton::dist
