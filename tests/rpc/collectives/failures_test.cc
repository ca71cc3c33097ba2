// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/rpc/collectives/groups.h"

// What goes wrong in a group is said to all of it, by name.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::CollectiveOptions;
using rpc::ProcessGroup;

const GroupKind kSharedGroup{.name = "Shared", .shared_memory = true};

class BrokenGroups : public ::testing::TestWithParam<bool> {
 protected:
  Groups groups_{3, {.name = "", .shared_memory = GetParam()}};
};

TEST_P(BrokenGroups, ADeadlineNamesWhoHasNotCome) {
  groups_.ExpectEach(
      [](size_t, ProcessGroup& group) { return group.Barrier(); });
  const Tensor x = Tensor::Ones({100'000}), y = Tensor::Ones({100'000});
  ::testing::internal::CaptureStderr();
  // Nobody else's ends before this one's.
  const auto first = groups_[0]->AllReduce(x, {}, {.timeout = 200ms});
  const auto second = groups_[2]->AllReduce(y);
  for (const auto& call : {first, second}) {
    const absl::Status status = call.Await(20s);
    EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded,
                              "rank 1 (w1) has not begun it, its last is #1 "
                              "barrier, done"));
    EXPECT_EQ(status.message().find("rank 2"), std::string::npos) << status;
    EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded,
                              "all_reduce sum f32[100000] (#2 of group world) "
                              "at rank 0 (w0)"));
  }
  // What was compared is in the log.
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string records = "(#2 of group world) at rank 0 (w0): records of ";
  const std::string reduces = "#1 barrier, done; #2 all_reduce sum f32[100000]";
  for (const std::string& line : std::vector<std::string>{
           "rank 0 (w0): " + reduces, "rank 1 (w1): #1 barrier, done\n",
           "rank 2 (w2): " + reduces})
    EXPECT_THAT(log, ::testing::HasSubstr(records + line));
  // It is broken for all, the one that was not there among them. What it begins
  // before it hears of that is told that it does something else.
  while (groups_[1]->status().ok()) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(groups_[1]->Barrier().Await(20s),
              Fails(StatusCode::kDeadlineExceeded, "rank 1 (w1)"));
  EXPECT_THAT(groups_[0]->status(), Fails(StatusCode::kDeadlineExceeded, ""));
}

TEST_P(BrokenGroups, AMemberThatDoesSomethingElseIsNamed) {
  std::vector<Tensor> mine;
  for (int i = 0; i < 3; ++i) mine.push_back(Tensor::Ones({50'000}));
  const auto results = groups_.Each([&](size_t rank, ProcessGroup& group) {
    return rank == 1 ? group.Broadcast(mine[rank], 2)
                     : group.AllReduce(mine[rank], rpc::ReduceOp::kMax);
  });
  // Whoever sees it first tells: either that rank 1 differs from it, or, at
  // rank 1 itself, that the others do.
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(status.message(),
                ::testing::HasSubstr("broadcast f32[50000], root 2"));
    EXPECT_THAT(status.message(),
                ::testing::HasSubstr("all_reduce max f32[50000]"));
  }
}

TEST_P(BrokenGroups, SizesThatDifferAreNamed) {
  std::vector<Tensor> mine = {Tensor::Ones({64}), Tensor::Ones({64}),
                              Tensor::Ones({65})};
  const auto results = groups_.Each([&](size_t rank, ProcessGroup& group) {
    return group.AllReduce(mine[rank]);
  });
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(status.message(), ::testing::HasSubstr("f32[65]"));
    EXPECT_THAT(status.message(), ::testing::HasSubstr("f32[64]"));
  }
}

TEST_P(BrokenGroups, AnAbortEndsWhatOthersWaitFor) {
  const Tensor x = Tensor::Ones({10}), y = Tensor::Ones({10});
  const auto reduced = groups_[0]->AllReduce(x);
  const auto queued = groups_[0]->Barrier();
  const auto received = groups_[1]->Receive(y, 0);
  groups_[2]->Abort(absl::AbortedError("no more of this"));
  for (const auto& call : {reduced, queued, received})
    EXPECT_THAT(call.Await(20s), Fails(StatusCode::kAborted, "no more"));
}

TEST_P(BrokenGroups, ATensorThatNobodyReceivesEndsByItsDeadline) {
  const Tensor x = Tensor::Ones({10}), y = Tensor::Ones({11});
  // One that does not fit is wrong, and breaks nothing.
  const auto sent = groups_[0]->Send(x, 1, 5);
  EXPECT_THAT(groups_[1]->Receive(y, 0, 5).Await(20s),
              Fails(StatusCode::kInvalidArgument, "f32[10] into f32[11]"));
  EXPECT_THAT(sent.Await(20s), Fails(StatusCode::kInvalidArgument, "f32[11]"));
  EXPECT_THAT(
      groups_[0]->Send(x, 1, 6, {.timeout = 100ms}).Await(20s),
      Fails(StatusCode::kDeadlineExceeded, "send to rank 1 (w1), tag 6"));
  EXPECT_FALSE(groups_[0]->status().ok());
}

TEST_P(BrokenGroups, TheSurvivorsOfAWorkerThatWentGoOn) {
  const Tensor x = Tensor::Ones({100'000}), y = Tensor::Ones({100'000});
  const std::vector<Future<void>> calls = {groups_[0]->AllReduce(x),
                                           groups_[2]->AllReduce(y)};
  groups_.Drop(1);
  groups_.cluster().Kill("w1");
  for (const auto& call : calls)
    EXPECT_THAT(call.Await(20s), Fails(StatusCode::kUnavailable, "w1"));
  const std::vector<ProcessGroup::Made> made = {groups_[0]->Shrink(),
                                                groups_[2]->Shrink()};
  std::vector<Groups::Group> left;
  std::vector<Future<void>> means;
  const std::vector<Tensor> mine = {Tensor::Full({70'000}, 1),
                                    Tensor::Full({70'000}, 4)};
  for (size_t i = 0; i < 2; ++i) {
    const auto group = made[i].Await(20s);
    ASSERT_THAT(group, IsOk());
    EXPECT_EQ((*group)->rank(), static_cast<int>(i));
    EXPECT_EQ((*group)->members()[1].name, "w2");
    means.push_back((*group)->AllReduce(mine[i], rpc::ReduceOp::kMean));
    left.push_back(*group);
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(means[i].Await(20s), IsOk());
    EXPECT_EQ(mine[i].data<float>()[69'999], 2.5f);
  }
}

// They meet at rank 0.
TEST(Shrinking, GoesOnWithoutAWorkerThatIsLostMeanwhile) {
  for (const int lost : {0, 3}) {
    Groups groups(4, {.name = "Messages", .shared_memory = false});
    // Who is connected to all others learns of a loss without a rendezvous.
    groups.ExpectEach([](size_t, ProcessGroup& group) {
      return group.AllReduce(Tensor::Ones({1}));
    });
    const auto lose = [&](int rank) {
      groups.Drop(static_cast<size_t>(rank));
      groups.cluster().Kill(Groups::NameOf(rank));
    };
    lose(1);
    std::vector<ProcessGroup::Made> made;
    for (const size_t rank : {0, 2, 3})
      if (static_cast<int>(rank) != lost)
        made.push_back(groups[rank]->Shrink());
    for (const auto& each : made) EXPECT_FALSE(each.ready()) << lost;
    lose(lost);
    std::vector<Groups::Group> left;
    std::vector<Future<void>> sums;
    const std::vector<Tensor> mine = {Tensor::Full({5}, 1),
                                      Tensor::Full({5}, 2)};
    for (size_t i = 0; i < made.size(); ++i) {
      const auto group = made[i].Await(20s);
      ASSERT_THAT(group, IsOk()) << lost;
      EXPECT_EQ((*group)->size(), 2);
      EXPECT_EQ((*group)->rank(), static_cast<int>(i));
      left.push_back(*group);
      sums.push_back((*group)->AllReduce(mine[i]));
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      EXPECT_THAT(sums[i].Await(20s), IsOk()) << lost;
      EXPECT_EQ(mine[i].data<float>()[4], 3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, BrokenGroups, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Shared" : "Messages";
                         });

TEST(GroupMaking, ADeadlineNamesWhoHasNotCome) {
  Groups groups(3, kSharedGroup);
  rpc::GroupOptions options;
  options.name = "second";
  options.timeout = 300ms;
  const auto first = ProcessGroup::Make(groups.agent(0), options);
  const auto third = ProcessGroup::Make(groups.agent(2), options);
  for (const auto& made : {first, third})
    EXPECT_THAT(made.Await(20s), Fails(StatusCode::kDeadlineExceeded, "w1"));
}

TEST(GroupMaking, FailsWhenAMemberIsLostMeanwhile) {
  Groups groups(3, kSharedGroup);
  rpc::GroupOptions options;
  options.name = "second";
  const auto first = ProcessGroup::Make(groups.agent(0), options);
  groups.Drop(1);
  groups.cluster().Kill("w1");
  EXPECT_THAT(first.Await(20s), Fails(StatusCode::kUnavailable, "w1"));
}

TEST(GroupMaking, MembersMustBeTheSameForAll) {
  Groups groups(3, kSharedGroup);
  rpc::GroupOptions options;
  options.name = "second";
  options.timeout = 5s;
  options.members = {"w0", "w1"};
  const auto first = ProcessGroup::Make(groups.agent(0), options);
  options.members = {"w0", "w1", "w2"};
  EXPECT_THAT(ProcessGroup::Make(groups.agent(1), options).Await(20s),
              Fails(StatusCode::kInvalidArgument, "w0, w1, w2 here"));
  options.members = {"w0"};
  EXPECT_THAT(ProcessGroup::Make(groups.agent(1), options).Await(20s),
              Fails(StatusCode::kInvalidArgument, "w1 is no member"));
  options.members = {"w0", "nobody"};
  EXPECT_THAT(ProcessGroup::Make(groups.agent(0), options).Await(20s),
              Fails(StatusCode::kNotFound, "nobody"));
  options.members = {"w0", "w1"};
  EXPECT_THAT(ProcessGroup::Make(groups.agent(1), options).Await(20s), IsOk());
  EXPECT_THAT(first.Await(20s), IsOk());
}

TEST(GroupMaking, NeedsWorkersThatHaveCollectives) {
  LocalCluster cluster({.fill = {}});
  EXPECT_THAT(ProcessGroup::Make(cluster["alice"]).Await(20s),
              Fails(StatusCode::kFailedPrecondition, "AttachCollectives"));
}

}  // namespace
}  // namespace baton::testing
