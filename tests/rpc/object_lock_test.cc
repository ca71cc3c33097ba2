// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/object_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::Access;
using rpc::HoldId;
using rpc::ObjectLock;
using rpc::ObjectUse;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

class ObjectLockTest : public ::testing::Test {
 protected:
  std::shared_ptr<ObjectUse> UseOf(std::string_view name, Access access,
                                   std::vector<HoldId> within = {}) {
    auto use = std::make_shared<ObjectUse>();
    use->id = {7, ++last_};
    use->within = std::move(within);
    use->access = access;
    use->method = name;
    return use;
  }
  // Asks for the object; the name turns up in granted_ when it comes.
  std::shared_ptr<ObjectUse> Ask(std::string_view name, Access access,
                                 std::vector<HoldId> within = {}) {
    auto use = UseOf(name, access, std::move(within));
    auto enter = [this, name] { granted_.emplace_back(name); };
    number_ = lock_.Acquire(use, enter);
    if (number_ == 0) enter();
    return use;
  }
  Names Granted() { return std::exchange(granted_, {}); }

  ObjectLock lock_{[] { return std::string("Desk"); }, {0x3f9c, 5}};
  Names granted_;
  uint64_t number_ = 0;  // of the last one that asked
  uint64_t last_ = 0;
};

TEST_F(ObjectLockTest, IsNamedForItsObject) {
  EXPECT_EQ(lock_.name(), "Desk 5 of 3f9c");
}

TEST_F(ObjectLockTest, ExclusiveOnesComeOneAtATimeInOrder) {
  auto a = Ask("a", Access::kExclusive);
  auto b = Ask("b", Access::kExclusive);
  auto c = Ask("c", Access::kExclusive);
  EXPECT_THAT(Granted(), ElementsAre("a"));
  lock_.Release(*a);
  EXPECT_THAT(Granted(), ElementsAre("b"));
  lock_.Release(*b);
  EXPECT_THAT(Granted(), ElementsAre("c"));
  lock_.Release(*c);
  EXPECT_THAT(lock_.Holders(), IsEmpty());
}

TEST_F(ObjectLockTest, SharedOnesComeTogetherButOvertakeNobody) {
  auto a = Ask("a", Access::kShared);
  auto b = Ask("b", Access::kShared);
  auto c = Ask("c", Access::kExclusive);
  auto d = Ask("d", Access::kShared);
  auto e = Ask("e", Access::kShared);
  EXPECT_THAT(Granted(), ElementsAre("a", "b"));
  EXPECT_FALSE(lock_.TryAcquire(UseOf("f", Access::kShared)));
  lock_.Release(*a);
  EXPECT_THAT(Granted(), IsEmpty());
  lock_.Release(*b);
  EXPECT_THAT(Granted(), ElementsAre("c"));
  lock_.Release(*c);
  EXPECT_THAT(Granted(), ElementsAre("d", "e"));
}

TEST_F(ObjectLockTest, WhomAHolderWaitsForComesInAtOnce) {
  auto a = Ask("a", Access::kExclusive);
  Ask("b", Access::kExclusive);
  auto c = Ask("c", Access::kExclusive, {a->id});
  EXPECT_THAT(Granted(), ElementsAre("a", "c"));
  // As deep as it goes.
  auto d = Ask("d", Access::kExclusive, {a->id, c->id});
  EXPECT_THAT(Granted(), ElementsAre("d"));
  lock_.Release(*d);
  lock_.Release(*c);
  EXPECT_THAT(Granted(), IsEmpty());
  lock_.Release(*a);
  EXPECT_THAT(Granted(), ElementsAre("b"));
}

TEST_F(ObjectLockTest, TwoCallsOfOneHandlerComeOneAfterTheOther) {
  auto a = Ask("a", Access::kExclusive);
  auto b = Ask("b", Access::kExclusive, {a->id});
  auto c = Ask("c", Access::kExclusive, {a->id});
  auto d = Ask("d", Access::kShared, {a->id});
  EXPECT_THAT(Granted(), ElementsAre("a", "b"));
  lock_.Release(*b);
  EXPECT_THAT(Granted(), ElementsAre("c"));
  lock_.Release(*c);
  EXPECT_THAT(Granted(), ElementsAre("d"));
}

TEST_F(ObjectLockTest, ANestedExclusiveCallWaitsForOtherReaders) {
  auto a = Ask("a", Access::kShared);
  auto b = Ask("b", Access::kShared);
  auto c = Ask("c", Access::kExclusive, {a->id});
  auto d = Ask("d", Access::kShared);
  EXPECT_THAT(Granted(), ElementsAre("a", "b"));
  // What the other reader waits for is not behind it.
  auto e = Ask("e", Access::kShared, {b->id});
  EXPECT_THAT(Granted(), ElementsAre("e"));
  lock_.Release(*e);
  lock_.Release(*b);
  EXPECT_THAT(Granted(), ElementsAre("c"));
  lock_.Release(*c);
  EXPECT_THAT(Granted(), ElementsAre("d"));
}

TEST_F(ObjectLockTest, OneThatGivesUpIsInNobodysWay) {
  auto a = Ask("a", Access::kShared);
  Ask("b", Access::kExclusive);
  const uint64_t b = number_;
  Ask("c", Access::kShared);
  EXPECT_THAT(Granted(), ElementsAre("a"));
  EXPECT_TRUE(lock_.Withdraw(b));
  EXPECT_THAT(Granted(), ElementsAre("c"));
  EXPECT_FALSE(lock_.Withdraw(b));
}

TEST_F(ObjectLockTest, AReservationWaitsForAnotherToEnd) {
  const auto now = std::chrono::steady_clock::now();
  auto first = lock_.AwaitReservation("stage 0", now);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(lock_.AwaitReservation("stage 1", now),
              Fails(StatusCode::kFailedPrecondition, "is stage 0"));
  // Calls do not mind.
  Ask("a", Access::kExclusive);
  EXPECT_THAT(Granted(), ElementsAre("a"));
  std::thread ends([&] { first->reset(); });
  EXPECT_THAT(lock_.AwaitReservation("stage 1", now + 8s), IsOk());
  ends.join();
}

TEST_F(ObjectLockTest, ALaterEpochOfAReservationsLineTakesTheObjectAtOnce) {
  const auto now = std::chrono::steady_clock::now();
  const auto first = lock_.AwaitReservation("stage 0", now, {"line", 1});
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(lock_.AwaitReservation("stage 1", now, {"another line", 2}),
              Fails(StatusCode::kFailedPrecondition, "is stage 0"));
  const auto second = lock_.AwaitReservation("stage 2", now, {"line", 2});
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE((*first)->superseded());
  EXPECT_FALSE((*second)->superseded());
  EXPECT_THAT(lock_.AwaitReservation("stage 3", now + 8s, {"line", 1}),
              Fails(StatusCode::kFailedPrecondition, "made later"));
}

}  // namespace
}  // namespace baton::testing
