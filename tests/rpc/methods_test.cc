// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "rpc/control_channel.h"
#include "rpc/peers.h"
#include "rpc/registry.h"
#include "tests/rpc/counter.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using ::testing::Contains;
using ::testing::ElementsAre;

struct Base {
  int Inherited(int x) { return x; }
};
struct Derived : Base {
  static std::unique_ptr<Derived> Make() { return nullptr; }
  using Exports = rpc::Methods<&Derived::Make, &Derived::Inherited>;
};
int One(int) { return 1; }
int Two(int) { return 2; }

static_assert(
    std::is_same_v<rpc::internal::ResultType<&Derived::Make>, Derived>);
static_assert(std::is_same_v<rpc::internal::ResultType<&Counter::Check>, void>);
static_assert(std::is_same_v<rpc::internal::ResultType<&Counter::AddTo>, int>);
static_assert(
    rpc::internal::IndexIn<&Derived::Inherited, Derived::Exports>::kIndex == 1);
static_assert(
    !rpc::internal::IndexIn<&Counter::NotExported, Counter::Exports>::kFound);

TEST(Registry, NamesItsMethods) {
  rpc::Registry registry;
  registry.Add<Derived>().AddFunction<&One>();
  EXPECT_THAT(registry.MethodNames(), Contains("Derived::Inherited"));
  EXPECT_THAT(registry.MethodNames(), Contains("One"));
}

TEST(Registry, DigestTellsContentsNotOrder) {
  rpc::Registry a, b, c;
  a.Add<Derived>().AddFunction<&One>();
  b.AddFunction<&One>().Add<Derived>();
  c.AddFunction<&Two>().Add<Derived>();
  EXPECT_EQ(a.Digest(), b.Digest());
  EXPECT_NE(a.Digest(), c.Digest());
}

TEST(Registry, RemembersADoubleRegistration) {
  rpc::Registry registry;
  registry.AddFunction<&One>().AddFunction<&One>();
  EXPECT_THAT(registry.status(), Fails(StatusCode::kAlreadyExists, "One"));
}

TEST(Registry, FindsOnlyWhatIsThere) {
  rpc::Registry registry;
  registry.Add<Derived>();
  const uint64_t type = rpc::internal::TypeId<Derived>();
  EXPECT_EQ((*registry.Find({type, 1}))->name, "Derived::Inherited");
  EXPECT_THAT(registry.Find({type, 2}),
              Fails(StatusCode::kUnimplemented, "Derived exports 2 methods"));
  EXPECT_FALSE(registry.Find({type + 1, 0}).ok());
}

TEST(SeenNumbers, EachIsNewOnceInAnyOrder) {
  rpc::internal::SeenNumbers seen;
  for (uint64_t n : {1, 3, 2, 7, 5}) EXPECT_TRUE(seen.FirstTime(n)) << n;
  for (uint64_t n : {1, 2, 3, 5, 7, 0}) EXPECT_FALSE(seen.FirstTime(n)) << n;
  for (uint64_t n = 8; n < 200'000; n += 2) EXPECT_TRUE(seen.FirstTime(n));
  EXPECT_FALSE(seen.FirstTime(9));
}

TEST(SeenNumbers, OneThatManyOvertookIsStillNew) {
  rpc::internal::SeenNumbers seen;
  for (uint64_t n = 4; n < 200'000; ++n) ASSERT_TRUE(seen.FirstTime(n));
  for (uint64_t n : {2, 1, 3}) EXPECT_TRUE(seen.FirstTime(n)) << n;
  for (uint64_t n : {1, 2, 3, 4, 199'999}) EXPECT_FALSE(seen.FirstTime(n)) << n;
}

TEST(SeenNumbers, AGapIsFilledFromAnySide) {
  rpc::internal::SeenNumbers seen;
  EXPECT_TRUE(seen.FirstTime(10));
  for (uint64_t n : {5, 1, 9, 4, 6, 2, 8, 3, 7}) {
    EXPECT_TRUE(seen.FirstTime(n)) << n;
    EXPECT_FALSE(seen.FirstTime(n)) << n;
  }
  for (uint64_t n = 1; n <= 10; ++n) EXPECT_FALSE(seen.FirstTime(n)) << n;
  EXPECT_TRUE(seen.FirstTime(11));
}

TEST(SeenNumbers, ExtremeNumbersDoNoHarm) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  rpc::internal::SeenNumbers seen;
  EXPECT_FALSE(seen.FirstTime(kMost));
  EXPECT_TRUE(seen.FirstTime(kMost - 1));
  EXPECT_FALSE(seen.FirstTime(kMost - 1));
  EXPECT_FALSE(seen.FirstTime(kMost));
  EXPECT_FALSE(seen.FirstTime(0));
  EXPECT_TRUE(seen.FirstTime(1));
}

class ControlChannelTest : public ::testing::Test {
 protected:
  using Channel = rpc::internal::ControlChannel;
  using Kind = rpc::internal::ControlKind;
  void Push(uint64_t number) {
    sender_.Push({Kind::kAdd, {1, number}, {}}, [this] { ++acked_; });
  }
  void Deliver(const rpc::internal::ControlFrame& frame) {
    for (const auto& item : receiver_.Receive(frame).items) {
      got_.push_back(item.id.number);
    }
  }
  void Answer() {
    for (const auto& acked :
         sender_.Receive(receiver_.Take(now_, 100ms)).acked) {
      acked();
    }
  }
  Channel sender_, receiver_;
  Channel::Clock::time_point now_ = Channel::Clock::now();
  std::vector<uint64_t> got_;
  int acked_ = 0;
};

TEST_F(ControlChannelTest, ItemsArriveOnceInOrderWhateverIsLost) {
  Push(1);
  const auto lost = sender_.Take(now_, 100ms);
  Push(2);
  const auto early = sender_.Take(now_, 100ms);
  EXPECT_FALSE(sender_.Due(now_, 100ms));
  Deliver(early);
  EXPECT_TRUE(got_.empty());
  now_ += 200ms;
  ASSERT_TRUE(sender_.Due(now_, 100ms));
  Deliver(sender_.Take(now_, 100ms));
  Deliver(lost);
  Deliver(early);
  EXPECT_THAT(got_, ElementsAre(1, 2));
  Answer();
  EXPECT_EQ(acked_, 2);
  EXPECT_FALSE(sender_.Due(now_ + 10s, 100ms));
}

TEST_F(ControlChannelTest, ANewEpochForgetsTheOld) {
  Push(1);
  const auto old = sender_.Take(now_, 100ms);
  Deliver(old);
  sender_.Reset();
  Push(2);
  Deliver(sender_.Take(now_, 100ms));
  Deliver(old);
  EXPECT_THAT(got_, ElementsAre(1, 2));
  Answer();
  EXPECT_EQ(acked_, 1);
}

TEST_F(ControlChannelTest, ManyItemsTakeSeveralFrames) {
  for (uint64_t i = 0; i < 1000; ++i) Push(i);
  int frames = 0;
  while (sender_.Due(now_, 100ms)) {
    Deliver(sender_.Take(now_, 100ms));
    ++frames;
  }
  EXPECT_EQ(got_.size(), 1000u);
  EXPECT_LT(frames, 10);
}

}  // namespace
}  // namespace baton::testing
