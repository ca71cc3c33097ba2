// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "tests/rpc/collectives/groups.h"

// What groups of GPUs do beyond what all groups do, and why some have none.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::ProcessGroup;

const GroupKind kGpus{.name = "Nccl", .gpus = true};

TEST(GpuGroupMaking, TensorsOfGpusAreRefusedWhereSomeMemberHasNone) {
  const Groups groups(2, {.name = "Shared"});
  EXPECT_THAT(groups[0]->Takes(Device::Cpu()), IsOk());
  EXPECT_THAT(groups[0]->Takes(Device::Cuda(0)),
              Fails(StatusCode::kInvalidArgument,
                    "not for tensors of cuda:0: not every member of the group "
                    "has declared a GPU"));
}

TEST(GpuGroupMaking, AGroupOfCpuTensorsNeedsNoNccl) {
  const Groups groups(2, kGpus);
  const Tensor x = Tensor::Ones({3});
  groups.ExpectEach([&](size_t rank, ProcessGroup& group) {
    return group.AllReduce(rank == 0 ? x : Tensor::Ones({3}));
  });
  EXPECT_EQ(x.data<float>()[2], 2);
  if (cuda::DeviceCount() > 0) return;
  EXPECT_THAT(groups[0]->Takes(Device::Cuda(0)),
              Fails(StatusCode::kInvalidArgument, "rank 0 (w0) has no NCCL"));
}

class GpuGroups : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
    if (cuda::DeviceCount() < 2) GTEST_SKIP() << "needs two GPUs";
    groups_.emplace(2, kGpus, 20s);
  }
  // Runs fn(rank) on a thread for each.
  template <typename Fn>
  static void OnEach(const Fn& fn) {
    std::thread other([&] { fn(size_t{1}); });
    fn(size_t{0});
    other.join();
  }
  Tensor Full(size_t rank, int64_t count, double value) const {
    return Tensor::Full({count}, value, {.device = groups_->device(rank)});
  }
  ProcessGroup& group(size_t rank) const { return *(*groups_)[rank]; }
  // So that nothing is set up any more.
  void Meet() const {
    OnEach([&](size_t rank) {
      EXPECT_THAT(group(rank).AllReduce(Full(rank, 1000, 1)).Await(), IsOk());
    });
  }

  std::optional<Groups> groups_;
};

TEST_F(GpuGroups, WorkThatComesNextWaitsForTheResult) {
  OnEach([&](size_t rank) {
    const Tensor x = Full(rank, 16 << 20, 1);
    std::vector<Future<void>> calls;
    for (int i = 0; i < 5; ++i) {
      ops::AddInto(x, Full(rank, 16 << 20, static_cast<double>(rank)));
      calls.push_back(group(rank).AllReduce(x, rpc::ReduceOp::kMean));
    }
    // 1, and five times the mean of 0 and 1.
    EXPECT_EQ(x.Slice(0, (16 << 20) - 1, 16 << 20).Item(), 3.5);
    for (const auto& call : calls) EXPECT_THAT(call.Await(), IsOk());
  });
}

TEST_F(GpuGroups, ReplaysDoWhatWasRecorded) {
  Meet();
  OnEach([&](size_t rank) {
    const Tensor x = Full(rank, 100'000, 1 + static_cast<double>(rank));
    const Tensor one = Full(rank, 100'000, 1);
    const Graph graph = Graph::Record({groups_->device(rank)}, [&] {
      ops::AddInto(x, one);
      EXPECT_THAT(group(rank).AllReduce(x).Await(), IsOk());
      ops::AddInto(x, one);
      EXPECT_THAT(group(rank).AllReduce(x, rpc::ReduceOp::kMean).Await(),
                  IsOk());
    });
    for (int i = 0; i < 3; ++i) graph.Replay();
    // From (a, b) to a + b + 3, and from c of both twice to 2 c + 3.
    EXPECT_EQ(x.Slice(0, 99'999, 100'000).Item(), 33);
    EXPECT_THAT(group(rank).status(), IsOk());
    const auto records = group(rank).records();
    EXPECT_EQ(records.back().what.ToString(), "replay of 2 collectives");
    EXPECT_THAT(group(rank).Barrier().Await(), IsOk());
  });
}

TEST_F(GpuGroups, OnlyWhatGpusDoIsRecorded) {
  Meet();
  const Tensor x = Tensor::Ones({4});
  const Tensor on_gpu = Full(0, 4, 1);
  std::vector<Future<void>> calls;
  Graph::Record({groups_->device(0)}, [&] {
    calls = {group(0).AllReduce(x), group(0).Send(on_gpu, 1),
             group(0).Receive(on_gpu, 1)};
  });
  for (const Future<void>& call : calls)
    EXPECT_THAT(call.Await(), Fails(StatusCode::kInvalidArgument, "recorded"));
}

TEST_F(GpuGroups, ADeadlineNamesWhoHasNotComeAndFreesTheGpu) {
  Meet();
  const Tensor x = Full(0, 1 << 20, 1);
  EXPECT_THAT(group(0).AllReduce(x, {}, {.timeout = 300ms}).Await(),
              Fails(StatusCode::kDeadlineExceeded,
                    "rank 1 (w1) has not begun it, its last is #1 all_reduce "
                    "sum f32[1000], done"));
  EXPECT_THAT(group(1).Barrier().Await(),
              Fails(StatusCode::kDeadlineExceeded, "rank 1 (w1)"));
  EXPECT_EQ(Full(0, 10, 7).Slice(0, 9, 10).Item(), 7);
}

TEST_F(GpuGroups, ABarrierEndsByItsDeadlineBehindACallWithALaterOne) {
  Meet();
  const auto first = group(0).AllReduce(Full(0, 1000, 1), {}, {.timeout = 1h});
  for (const auto& call : {group(0).Barrier({.timeout = 300ms}), first}) {
    EXPECT_THAT(call.Await(10s), Fails(StatusCode::kDeadlineExceeded,
                                       "rank 1 (w1) has not begun it"));
  }
}

TEST_F(GpuGroups, AnAbortEndsWhatOthersWaitForAndReplaysFailFromThenOn) {
  Meet();
  OnEach([&](size_t rank) {
    const Tensor x = Full(rank, 1 << 20, 1);
    EXPECT_THAT(group(rank).AllReduce(x).Await(), IsOk());
    const Graph graph = Graph::Record({groups_->device(rank)}, [&] {
      group(rank).AllReduce(x).OnReady([](const absl::Status&) {});
    });
    if (rank == 1) return;
    graph.Replay();
    const auto call = group(0).AllReduce(Full(0, 100, 1));
    group(0).Abort(absl::AbortedError("no more of this"));
    EXPECT_THAT(call.Await(), Fails(StatusCode::kAborted, "no more"));
    EXPECT_THAT(CatchErrors([&] { graph.Replay(); }),
                Fails(StatusCode::kAborted, "no more"));
    Synchronize(groups_->device(0));
  });
}

TEST_F(GpuGroups, TheSurvivorOfAWorkerThatWentGoesOn) {
  Meet();
  const Tensor x = Full(0, 1 << 20, 4);
  const auto call = group(0).AllReduce(x);
  groups_->Drop(1);
  groups_->cluster().Kill("w1");
  EXPECT_THAT(call.Await(), Fails(StatusCode::kUnavailable, "w1"));
  const auto alone = group(0).Shrink().Await();
  ASSERT_THAT(alone, IsOk());
  x.Fill(4);
  EXPECT_THAT((*alone)->AllReduce(x, rpc::ReduceOp::kMean).Await(), IsOk());
  EXPECT_EQ(x.Slice(0, 0, 1).Item(), 4);
}

// Of what is there before this one's members are others on the same GPUs.
TEST_F(GpuGroups, ASecondGroupIsByItself) {
  Meet();
  rpc::GroupOptions options = groups_->options();
  options.name = "second";
  OnEach([&](size_t rank) {
    const auto second =
        ProcessGroup::Make(groups_->agent(static_cast<int>(rank)), options)
            .Await();
    ASSERT_THAT(second, IsOk());
    const Tensor x = Full(rank, 5000, 1), y = Full(rank, 5000, 2);
    const auto first_call = group(rank).AllReduce(x);
    const auto second_call = (*second)->AllReduce(y);
    EXPECT_THAT(first_call.Await(), IsOk());
    EXPECT_THAT(second_call.Await(), IsOk());
    EXPECT_EQ(x.Slice(0, 0, 1).Item(), 2);
    EXPECT_EQ(y.Slice(0, 0, 1).Item(), 4);
    EXPECT_THAT((*second)->Barrier().Await(), IsOk());
  });
}

}  // namespace
}  // namespace baton::testing
