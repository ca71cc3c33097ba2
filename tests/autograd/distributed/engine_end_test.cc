// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "tests/autograd/distributed/engine_net.h"

// When contexts end, and that nothing else ends them.
namespace baton::dist {
namespace {

using ::testing::HasSubstr;
using EngineEndTest = EngineTest;

TEST_F(EngineEndTest, ALateCallDoesNotReviveAContext) {
  auto other = net_.at("alice").NewContext();
  Variable x = Leaf(2);
  ASSERT_TRUE(net_.Move("alice", "bob", other->id(), {x}).ok());
  std::string late = Encode(NoteOf(other->id()));
  ASSERT_TRUE(net_.at("alice").Release(other->id()).Await().ok());
  EXPECT_TRUE(
      absl::IsAborted(net_.at("bob").Open(Worker("carol"), late).status()));
  // A released sender says so, also to a worker that never heard of it.
  auto crossing = other->BeginSend(Worker("carol"));
  std::string bytes = other->FinishSend(*crossing);
  EXPECT_TRUE(
      absl::IsAborted(net_.at("carol").Open(Worker("alice"), bytes).status()));
  EXPECT_EQ(net_.at("bob").num_contexts(), 0u);
}

TEST_F(EngineEndTest, TheLossOfTheRootEndsItsContextsEverywhere) {
  auto other = net_.at("alice").NewContext();
  auto at_bob = net_.Move("alice", "bob", other->id(), {Leaf(2)});
  ASSERT_TRUE(net_.Move("bob", "carol", other->id(), *at_bob).ok());
  net_.Kill("alice");
  // Carol hears it from bob alone.
  net_.at("bob").OnWorkerLost("alice");
  for (const char* worker : {"bob", "carol"}) {
    EXPECT_TRUE(Eventually([&] { return net_.at(worker).num_contexts() == 0; }))
        << worker;
    const absl::Status late =
        net_.at(worker)
            .Open(Worker("dave"), Encode(NoteOf(other->id())))
            .status();
    EXPECT_TRUE(absl::IsAborted(late));
    EXPECT_THAT(std::string(late.message()),
                HasSubstr("its root, worker alice, is lost"));
  }
  net_.Kill("");
  EXPECT_TRUE(net_.at("alice").Release(other->id()).Await().ok());
}

TEST_F(EngineEndTest, TheLossOfAnOpenerEndsNothing) {
  Variable at_bob = Move("alice", "bob", Leaf(2));
  Move("bob", "carol", at_bob);
  net_.Kill("bob");
  net_.at("carol").OnWorkerLost("bob");
  net_.at("alice").OnWorkerLost("bob");
  EXPECT_TRUE(Eventually([&] { return net_.joins == 1; }));
  EXPECT_EQ(net_.at("carol").num_contexts(), 1u);
  Variable w = Leaf(3);
  EXPECT_TRUE(Backward(autograd::Sum(Move("carol", "alice", w * 1.0))).ok());
  EXPECT_EQ(GradientAt("carol", w), 1);
  // The end comes from the root now: bob, who would have told carol, is dead.
  ASSERT_TRUE(net_.at("alice").Release(context_->id()).Await().ok());
  EXPECT_EQ(net_.at("carol").num_contexts(), 0u);
  net_.Kill("");
  ASSERT_TRUE(
      net_.at("bob").OnRelease("alice", context_->id(), "").Await().ok());
}

TEST_F(EngineEndTest, AnOpenersLossAfterTheEndOfTheRootsShareEndsTheOthers) {
  Variable at_bob = Move("alice", "bob", Leaf(2));
  Move("bob", "carol", at_bob);
  net_.Kill("bob");
  ASSERT_TRUE(net_.at("alice").Release(context_->id()).Await().ok());
  EXPECT_EQ(net_.at("carol").num_contexts(), 1u);
  net_.at("carol").OnWorkerLost("bob");
  EXPECT_TRUE(Eventually([&] { return net_.at("carol").num_contexts() == 0; }));
  net_.Kill("");
  ASSERT_TRUE(
      net_.at("bob").OnRelease("alice", context_->id(), "").Await().ok());
}

// Bob's connection to alice broke, and she lives.
TEST_F(EngineEndTest, WhoWronglyThinksTheRootLostEndsNothing) {
  Move("bob", "carol", Move("alice", "bob", Leaf(2)));
  net_.at("bob").OnWorkerLost("alice");
  EXPECT_TRUE(Eventually([&] { return net_.joins == 1; }));
  for (const char* worker : {"alice", "bob", "carol"})
    EXPECT_EQ(net_.at(worker).num_contexts(), 1u) << worker;
  // Where bob does not reach her, his share ends, and no other.
  net_.Part("bob", "alice");
  net_.at("bob").OnWorkerLost("alice");
  EXPECT_TRUE(Eventually([&] { return net_.joins == 3; }));
  EXPECT_EQ(net_.at("bob").num_contexts(), 0u);
  EXPECT_EQ(net_.at("alice").num_contexts(), 1u);
  EXPECT_EQ(net_.at("carol").num_contexts(), 1u);
  ASSERT_TRUE(
      net_.at("alice").OnRelease("bob", context_->id(), "lost").Await().ok());
  EXPECT_EQ(net_.at("alice").num_contexts(), 1u);
}

}  // namespace
}  // namespace baton::dist
