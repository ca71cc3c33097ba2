// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/nccl_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

// What becomes of collectives that a GPU has been given, where the test says
// what the GPU does.
namespace baton::rpc {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using testing::Fails;
using testing::IsOk;
using testing::Within;
using Clock = std::chrono::steady_clock;

// So many calls have ended as it is told.
class FakeNcclGroup final : public cuda::NcclGroup {
 public:
  const Stream& stream() const override { return stream_; }
  absl::Status AllReduce(const Tensor&, const Tensor&,
                         cuda::NcclReduction) override {
    return Call("all_reduce");
  }
  absl::Status Broadcast(const Tensor&, const Tensor&, int root) override {
    return Call(absl::StrCat("broadcast ", root));
  }
  absl::Status AllReduceMany(const std::vector<Tensor>& tensors,
                             cuda::NcclReduction) override {
    return Call(absl::StrCat("all_reduce of ", tensors.size()));
  }
  absl::Status BroadcastMany(const std::vector<Tensor>& tensors,
                             int root) override {
    return Call(absl::StrCat("broadcast of ", tensors.size(), ", ", root));
  }
  absl::Status Reduce(const Tensor&, const Tensor&, cuda::NcclReduction,
                      int root) override {
    return Call(absl::StrCat("reduce ", root));
  }
  absl::Status AllGather(const Tensor&, const Tensor&) override {
    return Call("all_gather");
  }
  absl::Status ReduceScatter(const Tensor&, const Tensor&,
                             cuda::NcclReduction) override {
    return Call("reduce_scatter");
  }
  absl::Status Exchange(const Tensor&, const Tensor&, int64_t count,
                        const std::vector<int>& to,
                        const std::vector<int>& from) override {
    return Call(absl::StrCat("exchange ", count, " to ", absl::StrJoin(to, "+"),
                             " from ", absl::StrJoin(from, "+")));
  }
  Query WhenEnded(const Stream&) override {
    return [this, given = given_.load()]() -> absl::StatusOr<bool> {
      if (stuck) {
        asked.Set(absl::OkStatus());
        let_go = abort_.future().Await(5s).ok();
        return absl::CancelledError("aborted");
      }
      if (broken) return absl::UnavailableError("NCCL: a remote error");
      return given <= ended;
    };
  }
  void Abort() override {
    if (!aborted.exchange(true)) abort_.Set(absl::OkStatus());
  }

  std::vector<std::string> calls;
  std::atomic<int> ended{0};  // so many calls have
  std::atomic<bool> broken{false}, aborted{false};
  // Questions wait for an abort, as the driver has them wait while it waits
  // itself for a GPU that waits for a member that is lost.
  std::atomic<bool> stuck{false}, let_go{false};
  const Promise<void> asked;

 private:
  absl::Status Call(const std::string& what) {
    calls.push_back(what);
    ++given_;
    return absl::OkStatus();
  }

  const Stream stream_ = Stream::Default(Device::Cpu());
  std::atomic<int> given_{0};
  const Promise<void> abort_;
};

class NcclBackendTest : public ::testing::Test {
 protected:
  Future<void> Run(CollectiveKind kind, std::chrono::milliseconds timeout = 20s,
                   int root = -1) {
    CollectiveWork work{.what = {.kind = kind, .count = 4, .root = root},
                        .in = Tensor::Ones({12}),
                        .out = Tensor::Ones({12}),
                        .deadline = Clock::now() + timeout};
    return backend_.Run(work);
  }

  const std::shared_ptr<FakeNcclGroup> gpu_ = std::make_shared<FakeNcclGroup>();
  NcclBackend backend_{Device::Cpu(), /*rank=*/1, /*members=*/3, gpu_};
};

TEST_F(NcclBackendTest, CallsEndWhenTheGpuHasEndedThemAndInOrder) {
  const auto first = Run(CollectiveKind::kAllReduce);
  EXPECT_FALSE(first.ready());
  gpu_->ended = 1;
  EXPECT_THAT(first.Await(20s), IsOk());
  const auto second = Run(CollectiveKind::kAllGather);
  const auto third = Run(CollectiveKind::kAllReduce);
  EXPECT_THAT(backend_.AwaitEnd(Clock::now() + 10ms),
              Fails(StatusCode::kDeadlineExceeded, "GPU"));
  gpu_->ended = 3;
  EXPECT_THAT(second.Await(20s), IsOk());
  EXPECT_THAT(third.Await(20s), IsOk());
  EXPECT_THAT(backend_.AwaitEnd(Clock::now() + 20s), IsOk());
  EXPECT_FALSE(gpu_->aborted);
}

TEST_F(NcclBackendTest, SeveralTensorsAreGivenTogether) {
  gpu_->ended = 100;
  for (const auto kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast}) {
    const CollectiveWork work{
        .what = {.kind = kind, .count = 5, .root = 2, .sizes = {3, 2}},
        .several = {Tensor::Ones({3}), Tensor::Ones({2})},
        .deadline = Clock::now() + 20s};
    EXPECT_THAT(backend_.Run(work).Await(20s), IsOk());
  }
  EXPECT_THAT(gpu_->calls,
              ::testing::ElementsAre("all_reduce of 2", "broadcast of 2, 2"));
}

TEST_F(NcclBackendTest, WhatNcclDoesNotHaveIsExchangedPartByPart) {
  using Kind = CollectiveKind;
  const std::vector<std::pair<Kind, int>> calls = {
      {Kind::kGather, 0},  {Kind::kGather, 1},    {Kind::kScatter, 1},
      {Kind::kScatter, 2}, {Kind::kAllToAll, -1}, {Kind::kBroadcast, 2},
      {Kind::kReduce, 0}};
  gpu_->ended = 100;
  for (const auto& [kind, root] : calls)
    EXPECT_THAT(Run(kind, 20s, root).Await(20s), IsOk());
  EXPECT_THAT(gpu_->calls,
              ::testing::ElementsAre(
                  "exchange 4 to 0 from ", "exchange 4 to 1 from 0+1+2",
                  "exchange 4 to 0+1+2 from 1", "exchange 4 to  from 2",
                  "exchange 4 to 0+1+2 from 0+1+2", "broadcast 2", "reduce 0"));
}

TEST_F(NcclBackendTest, ADeadlineFailsAllThatIsUnderWay) {
  const auto first = Run(CollectiveKind::kAllReduce, 50ms);
  const auto second = Run(CollectiveKind::kAllReduce);
  EXPECT_THAT(first.Await(20s), Fails(StatusCode::kDeadlineExceeded, "GPU"));
  EXPECT_THAT(second.Await(20s), Fails(StatusCode::kDeadlineExceeded, "GPU"));
  EXPECT_THAT(Run(CollectiveKind::kAllReduce).Await(20s),
              Fails(StatusCode::kDeadlineExceeded, "GPU"));
  EXPECT_EQ(gpu_->calls.size(), 2u) << "the last was not given";
}

TEST_F(NcclBackendTest, ACallBehindOneWithALaterDeadlineEndsByItsOwn) {
  const auto first = Run(CollectiveKind::kAllReduce, 1h);
  const auto second = Run(CollectiveKind::kAllReduce, 1h);
  const auto third = Run(CollectiveKind::kAllReduce, 50ms);
  EXPECT_THAT(third.Await(10s), Fails(StatusCode::kDeadlineExceeded, "GPU"));
  for (const auto& other : {first, second})
    EXPECT_THAT(other.Await(10s), Fails(StatusCode::kDeadlineExceeded, "GPU"));
}

TEST_F(NcclBackendTest, WhatNcclReportsFailsWhatIsUnderWay) {
  const auto call = Run(CollectiveKind::kAllReduce);
  gpu_->broken = true;
  EXPECT_THAT(call.Await(20s), Fails(StatusCode::kUnavailable, "remote error"));
}

TEST_F(NcclBackendTest, AnAbortReachesTheGpuAndWhoeverWaits) {
  const auto call = Run(CollectiveKind::kAllReduce);
  backend_.Abort(absl::AbortedError("no more of this"));
  EXPECT_TRUE(gpu_->aborted);
  EXPECT_THAT(call.Await(20s), Fails(StatusCode::kAborted, "no more"));
  EXPECT_THAT(Run(CollectiveKind::kAllReduce).Await(20s),
              Fails(StatusCode::kAborted, "no more"));
}

TEST_F(NcclBackendTest, AnAbortWaitsForNoQuestion) {
  gpu_->stuck = true;
  const auto call = Run(CollectiveKind::kAllReduce);
  ASSERT_THAT(gpu_->asked.future().Await(20s), IsOk());
  backend_.Abort(absl::UnavailableError("rank 0 is lost"));
  EXPECT_THAT(call.Await(20s), Fails(StatusCode::kUnavailable, "is lost"));
  EXPECT_THAT(Run(CollectiveKind::kAllReduce).Await(20s),
              Fails(StatusCode::kUnavailable, "is lost"));
  EXPECT_TRUE(Within(4s, [&] { return gpu_->let_go.load(); }));
}

TEST_F(NcclBackendTest, WhatAMemberHadGivenWhenItLeftIsStillTaken) {
  backend_.Leave(0, absl::UnavailableError("rank 0 has left"));
  const auto given = Run(CollectiveKind::kAllReduce);
  gpu_->ended = 1;
  EXPECT_THAT(given.Await(20s), IsOk());
  const auto missing = Run(CollectiveKind::kAllReduce, 1h);
  EXPECT_THAT(missing.Await(20s),
              Fails(StatusCode::kUnavailable, "rank 0 has left"));
}

// It has no group.
TEST(NcclBackendAlone, GivesWhatItTakes) {
  NcclBackend alone(Device::Cpu(), 0, 1, nullptr);
  const Tensor in = Tensor::Full({2, 3}, 5), out = Tensor::Zeros({6});
  CollectiveWork work{.what = {.kind = CollectiveKind::kAllGather, .count = 6},
                      .in = in,
                      .out = out,
                      .deadline = Clock::now()};
  EXPECT_THAT(alone.Run(work).Await(20s), IsOk());
  EXPECT_EQ(out.data<float>()[5], 5);
  EXPECT_THAT(alone.AwaitEnd(Clock::now() + 20s), IsOk());
}

}  // namespace
}  // namespace baton::rpc
