// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "absl/status/status.h"
#include "core/tensor.h"
#include "rpc/collectives/collectives.h"
#include "rpc/collectives/process_group.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

// The code that docs/collectives.md shows (cmake/check_snippets.py).
namespace baton {
namespace {

using ::testing::Each;
using testing::IsOk;

absl::Status Average(rpc::Agent& agent, const Tensor& gradient) {
  // [all_reduce]
  ASSIGN_OR_RETURN(auto group, rpc::ProcessGroup::Make(agent).Await());
  RETURN_IF_ERROR(group->AllReduce(gradient, rpc::ReduceOp::kMean).Await());
  // [end]
  return absl::OkStatus();
}

TEST(CollectivesGuide, TheMeanOfTwoGradients) {
  testing::LocalCluster cluster(
      {.fill = rpc::RegisterCollectives, .on_start = rpc::AttachCollectives});
  const Tensor one = Tensor::Full({5}, 1), three = Tensor::Full({5}, 3);
  auto beside = std::async(std::launch::async,
                           [&] { return Average(cluster["alice"], one); });
  EXPECT_THAT(Average(cluster["bob"], three), IsOk());
  EXPECT_THAT(beside.get(), IsOk());
  EXPECT_THAT(one.ToVector<float>(), Each(2));
  EXPECT_THAT(three.ToVector<float>(), Each(2));
  cluster.ExpectIdle();
}

}  // namespace
}  // namespace baton
