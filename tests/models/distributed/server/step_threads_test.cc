// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/step_threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <vector>

#include "core/compute_threads.h"
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

// Where a machine has four cores or more, all of them would be two threads.
TEST(StepThreads, AreForTheCoresThatTheProcessMayUse) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  const int some_core = ::sched_getcpu();
  CPU_ZERO(&one);
  CPU_SET(some_core, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  const ComputeThreadsScope threads(1);
  const int here = StepThreadsHere({});
  ::sched_setaffinity(0, sizeof(before), &before);
  EXPECT_EQ(here, 1);
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
