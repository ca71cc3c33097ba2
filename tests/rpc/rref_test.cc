// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rref.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <unordered_set>

#include "rpc/agent_core.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

int Fail(int) { throw Error(absl::DataLossError("[made] of glass")); }
RRef<Counter> MakeLocal(rpc::CallContext& call, int start) {
  return RRef<Counter>::Make(call.agent(), std::make_shared<Counter>(start));
}
RRef<int> MakeAt(rpc::CallContext& call, std::string worker, int a, int b) {
  return call.agent().Remote<&Sum>(worker, a, b);
}
std::vector<RRef<int>> MakeSome(rpc::CallContext& call, int count) {
  std::vector<RRef<int>> some;
  for (int i = 0; i < count; ++i) {
    some.push_back(RRef<int>::Make(call.agent(), i));
  }
  return some;
}
int ReadLocal(RRef<Counter> counter) { return (*counter.LocalValue())->Get(); }
// Hands the handle on around the ring; the last one fetches.
Future<int> Chain(rpc::CallContext& call, RRef<int> value, int hops) {
  if (!value.confirmed()) {
    return ReadyFuture<int>(absl::InternalError("not confirmed"));
  }
  if (hops == 0) return value.Fetch(call);
  const int size = static_cast<int>(call.agent().workers().size());
  const int next = (static_cast<int>(call.agent().self().rank) + 1) % size;
  return call.agent().Async<&Chain>(rpc::Rank{next}, call, value, hops - 1);
}
// So many bytes.
Tensor Sevens(int64_t count) {
  return Tensor::Full({count}, 7, {.dtype = DType::kU8});
}
Future<int64_t> CountThem(rpc::CallContext& call,
                          const rpc::ValueOrRRef<Tensor>& bytes) {
  return bytes.Fetch(call).Then([](const Tensor& x) { return x.numel(); });
}
// Keeps a handle beyond the call that brought it.
struct Keeper {
  void Keep(RRef<Counter> counter) { kept = std::move(counter); }
  int Use() { return *kept.Async<&Counter::Add>(1).Await(); }
  RRef<Counter> Give() { return kept; }
  using Exports = rpc::Methods<rpc::kConstructor<>, &Keeper::Keep, &Keeper::Use,
                               &Keeper::Give>;
  RRef<Counter> kept;
};

void FillForRRefs(rpc::Registry& registry) {
  FillCounter(registry);
  registry.Add<Keeper>();
  registry.AddFunction<&Fail>();
  registry.AddFunction<&MakeLocal>();
  registry.AddFunction<&MakeAt>();
  registry.AddFunction<&MakeSome>();
  registry.AddFunction<&ReadLocal>();
  registry.AddFunction<&Chain>();
  registry.AddFunction<&Sevens>();
  registry.AddFunction<&CountThem>();
}

class RRefTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  ~RRefTest() override {
    cluster_.ExpectIdle();
    EXPECT_TRUE(Counter::AllGone());
  }
  RRef<Counter> CounterAt(const std::string& worker, int start = 10) {
    auto counter = rpc::Create<Counter>(alice_, worker, start).Await();
    EXPECT_THAT(counter, IsOk());
    return counter.ok() ? *counter : RRef<Counter>();
  }
  LocalCluster cluster_{{.names = {"alice", "bob", "carol"},
                         .fill = &FillForRRefs,
                         .transports = MakerOf(GetParam())}};
  rpc::Agent& alice_ = cluster_["alice"];
  rpc::Agent& bob_ = cluster_["bob"];
};
INSTANTIATE_TEST_SUITE_P(, RRefTest, kTransports, TransportName);

TEST_P(RRefTest, MethodsRunWhereTheObjectIs) {
  for (const char* owner : {"alice", "bob"}) {
    RRef<Counter> counter = CounterAt(owner);
    EXPECT_EQ(counter.owner().name, owner);
    EXPECT_TRUE(counter.confirmed());
    EXPECT_EQ(*counter.Async<&Counter::Add>(5).Await(), 15);
    EXPECT_EQ(*counter.Async<&Counter::Get>().Await(), 15);
    EXPECT_THAT(counter.Async<&Counter::Check>(true).Await(), IsOk());
    EXPECT_THAT(counter.Async<&Counter::Check>(false).Await(),
                Fails(StatusCode::kDataLoss, "Counter::Check: not fine"));
  }
}

TEST_P(RRefTest, OwnerKeepsObjectUntilLastHandleDies) {
  RRef<Counter> first = CounterAt("bob");
  RRef<Counter> second = first;
  first = {};
  EXPECT_EQ(*second.Async<&Counter::Get>().Await(), 10);
  EXPECT_EQ(Counter::alive, 1);
  second = {};
  cluster_.ExpectIdle();
  EXPECT_TRUE(Counter::AllGone());
}

TEST_P(RRefTest, AMovedHandleAndItsCopiesStandForItsSuccessor) {
  const RRef<Counter> first = CounterAt("bob", 1);
  const RRef<Counter> copy = first;
  RRef<Counter> second = CounterAt("carol", 2);
  const RRef<Counter> third = CounterAt("alice", 3);
  ASSERT_THAT(first.MoveTo(second), IsOk());
  EXPECT_EQ(copy, second);
  EXPECT_EQ(copy.owner().name, "carol");
  EXPECT_EQ(*copy.Async<&Counter::Get>().Await(), 2);
  // As an argument, too, and on from there.
  EXPECT_EQ(*alice_.Async<&ReadLocal>("carol", copy).Await(), 2);
  ASSERT_THAT(copy.MoveTo(third), IsOk());
  EXPECT_TRUE(first.is_owner());
  EXPECT_EQ((*first.LocalValue())->Get(), 3);
  EXPECT_EQ(second, third);
}

TEST_P(RRefTest, AHandleMovesOnlyToAnotherThatNamesSomething) {
  const RRef<Counter> counter = CounterAt("bob");
  EXPECT_THAT(counter.MoveTo({}), Fails(StatusCode::kInvalidArgument, "names"));
  EXPECT_THAT(RRef<Counter>().MoveTo(counter),
              Fails(StatusCode::kInvalidArgument, "names"));
  const RRef<Counter> next = CounterAt("carol");
  ASSERT_THAT(counter.MoveTo(next), IsOk());
  EXPECT_THAT(next.MoveTo(counter),
              Fails(StatusCode::kInvalidArgument, "another"));
}

TEST_P(RRefTest, ResultsMayStayWithTheirOwner) {
  RRef<Counter> counter = CounterAt("bob", 3);
  RRef<Tensor> scaled = counter.Remote<&Counter::Scale>(Tensor::Ones({2}));
  EXPECT_THAT(scaled.Fetch().Await()->ToVector<float>(), ElementsAre(3, 3));
  RRef<Tensor> twice = counter.Remote<&Counter::Scale>(scaled.Fetch());
  EXPECT_THAT(twice.Fetch().Await()->ToVector<float>(), ElementsAre(9, 9));
  EXPECT_THAT(twice.Ready().Await(), IsOk());
}

TEST_P(RRefTest, LongResultsStayWhereTheCallerLeavesThatToThem) {
  for (const int64_t bytes : {int64_t{1} << 16, (int64_t{1} << 16) + 1}) {
    const auto result = alice_.AsyncOrRemote<&Sevens>("bob", bytes).Await();
    ASSERT_THAT(result, IsOk());
    const bool is_long = bytes > 1 << 16;
    EXPECT_EQ(result->value.has_value(), !is_long);
    EXPECT_EQ(result->rref.owner().name, is_long ? "bob" : "");
    EXPECT_EQ(bob_.GetDebugInfo().objects.size(), is_long ? 1u : 0u);
    const auto tensor = result->Fetch().Await();
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->numel(), bytes);
  }
  // What is long already here need go nowhere.
  const auto own = alice_.AsyncOrRemote<&Sevens>("alice", 1 << 20).Await();
  EXPECT_TRUE(own->value.has_value());
  const auto counter = CounterAt("bob");
  EXPECT_EQ(counter.AsyncOrRemote<&Counter::Get>().Await()->value, 10);
}

TEST_P(RRefTest, ResultsThatStayedMayBeArguments) {
  const auto there = alice_.AsyncOrRemote<&Sevens>("bob", 1 << 20);
  EXPECT_EQ(*alice_.Async<&CountThem>("carol", there).Await(), 1 << 20);
  const auto here = alice_.AsyncOrRemote<&Sevens>("bob", 5);
  EXPECT_EQ(*alice_.Async<&CountThem>("carol", here).Await(), 5);
  EXPECT_THAT(alice_.AsyncOrRemote<&Fail>("bob", 1).Await(),
              Fails(StatusCode::kDataLoss, "Fail: [made] of glass"));
}

TEST_P(RRefTest, AnArgumentOfItsOwnerIsTheObjectItself) {
  RRef<Counter> counter = CounterAt("bob");
  EXPECT_EQ(*alice_.Async<&ReadLocal>("bob", counter).Await(), 10);
}

TEST_P(RRefTest, AnArgumentOfAThirdWorkerIsConfirmedBeforeUserCode) {
  RRef<Counter> counter = CounterAt("bob");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(*alice_.Async<&Counter::AddTo>("carol", counter, 1).Await(),
              11 + i);
  }
}

TEST_P(RRefTest, ALocalObjectTravelsToAUser) {
  RRef<Counter> mine =
      RRef<Counter>::Make(alice_, std::make_shared<Counter>(1));
  EXPECT_TRUE(mine.is_owner());
  EXPECT_EQ((*mine.LocalValue())->Get(), 1);
  EXPECT_EQ(*alice_.Async<&Counter::AddTo>("bob", mine, 4).Await(), 5);
  EXPECT_EQ(*alice_.Async<&Counter::AddTo>("alice", mine, 4).Await(), 9);
  EXPECT_EQ(*mine.Async<&Counter::Get>().Await(), 9);
}

TEST_P(RRefTest, ResultsMayBeHandles) {
  RRef<Counter> theirs = *alice_.Async<&MakeLocal>("bob", 6).Await();
  EXPECT_EQ(theirs.owner().name, "bob");
  EXPECT_EQ(*theirs.Async<&Counter::Get>().Await(), 6);
  // Made for bob at carol, at bob's own, and at the caller's worker.
  for (const char* where : {"carol", "bob", "alice"}) {
    RRef<int> made = *alice_.Async<&MakeAt>("bob", where, 1, 2).Await();
    EXPECT_EQ(made.owner().name, where);
    EXPECT_EQ(*made.Fetch().Await(), 3);
  }
  RRef<Counter> same = *theirs.Async<&Counter::Pass>(theirs).Await();
  EXPECT_EQ(same, theirs);
}

TEST_P(RRefTest, HandlesNest) {
  RRef<RRef<int>> outer = alice_.Remote<&MakeAt>("bob", "carol", 3, 4);
  RRef<int> inner = *outer.Fetch().Await();
  EXPECT_EQ(inner.owner().name, "carol");
  EXPECT_EQ(*inner.Fetch().Await(), 7);
  auto some = alice_.Async<&MakeSome>("bob", 20).Await();
  ASSERT_THAT(some, IsOk());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(*(*some)[i].Fetch().Await(), i);
}

TEST_P(RRefTest, AHandleTravelsAroundTheRing) {
  RRef<int> value = alice_.Remote<&Sum>("carol", 40, 2);
  EXPECT_EQ(*alice_.Async<&Chain>("bob", value, 16).Await(), 42);
}

TEST_P(RRefTest, AUserMayKeepAHandleWhenTheGiverDropsIts) {
  RRef<Keeper> keeper = *rpc::Create<Keeper>(alice_, "carol").Await();
  RRef<Counter> counter = CounterAt("bob");
  ASSERT_THAT(keeper.Async<&Keeper::Keep>(counter).Await(), IsOk());
  counter = {};
  EXPECT_EQ(*keeper.Async<&Keeper::Use>().Await(), 11);
  RRef<Counter> back = *keeper.Async<&Keeper::Give>().Await();
  keeper = {};
  EXPECT_EQ(*back.Async<&Counter::Add>(1).Await(), 12);
}

TEST_P(RRefTest, FailedCreationSticksToEveryHandle) {
  EXPECT_THAT(rpc::Create<Counter>(alice_, "bob", -1).Await(),
              Fails(StatusCode::kInvalidArgument,
                    "bob, Counter::Make: starts below zero"));
  RRef<int> broken = alice_.Remote<&Fail>("bob", 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(broken.Fetch().Await(),
                Fails(StatusCode::kDataLoss, "[made] of glass"));
  }
  EXPECT_THAT(broken.Ready().Await(), Fails(StatusCode::kDataLoss, "glass"));
  EXPECT_THAT(alice_.Async<&Chain>("carol", broken, 0).Await(),
              Fails(StatusCode::kDataLoss, "glass"));
  RRef<int> own = alice_.Remote<&Fail>("alice", 1);
  EXPECT_THAT(own.Fetch().Await(), Fails(StatusCode::kDataLoss, "glass"));
  EXPECT_THAT(own.LocalValue(), Fails(StatusCode::kDataLoss, "glass"));
}

TEST_P(RRefTest, LocalValueOfAUserNamesTheOwner) {
  RRef<Counter> counter = CounterAt("bob");
  EXPECT_THAT(counter.LocalValue(),
              Fails(StatusCode::kFailedPrecondition, "at worker bob"));
}

TEST_P(RRefTest, CountsAreExact) {
  RRef<int> local = RRef<int>::Make(alice_, 1);
  EXPECT_EQ(alice_.GetDebugInfo().objects.size(), 1u);
  EXPECT_TRUE(alice_.GetDebugInfo().objects[0].holders.empty());
  RRef<int> one = alice_.Remote<&Sum>("bob", 1, 2);
  RRef<int> two = alice_.Remote<&Sum>("bob", 3, 4);
  ASSERT_THAT(one.Ready().Await(), IsOk());
  ASSERT_THAT(two.Ready().Await(), IsOk());
  EXPECT_EQ(alice_.GetDebugInfo().user_handles, 2u);
  EXPECT_EQ(bob_.GetDebugInfo().objects.size(), 2u);
}

TEST_P(RRefTest, HandlesCompareHashAndPrint) {
  RRef<int> one = RRef<int>::Make(alice_, 1);
  RRef<int> two = RRef<int>::Make(alice_, 1);
  RRef<int> same = one;
  EXPECT_EQ(one, same);
  EXPECT_FALSE(one == two);
  EXPECT_EQ((std::unordered_set<RRef<int>>{one, two, same}).size(), 2u);
  EXPECT_THAT(one.ToString(), HasSubstr("RRef<int>("));
  EXPECT_THAT(one.ToString(), HasSubstr("owner alice"));
}

TEST_P(RRefTest, AnEmptyHandleIsAnErrorNotACrash) {
  RRef<Counter> nothing;
  EXPECT_THAT(nothing.Async<&Counter::Get>().Await(),
              Fails(StatusCode::kFailedPrecondition, "names nothing"));
  EXPECT_THAT(nothing.Ready().Await(),
              Fails(StatusCode::kFailedPrecondition, "names nothing"));
  EXPECT_FALSE(nothing.LocalValue().ok());
  EXPECT_EQ(nothing.ToString(), "RRef<Counter>(nothing)");
  RRef<Counter> counter = CounterAt("bob");
  EXPECT_FALSE(counter.Async<&Counter::Pass>(nothing).Await()->valid());
}

TEST_P(RRefTest, AHandleOfAnotherAgentIsRefused) {
  RRef<int> theirs = RRef<int>::Make(bob_, 1);
  EXPECT_THAT(alice_.Async<&Chain>("carol", theirs, 0).Await(),
              Fails(StatusCode::kInvalidArgument, "another agent"));
}

TEST_P(RRefTest, AnObjectThatIsGoneIsNotFound) {
  absl::Status status;
  bob_.core()->ownership().Resolve(
      {123, 456}, [&](const auto& value) { status = value.status(); });
  EXPECT_THAT(status, Fails(StatusCode::kNotFound, "its last handle is gone"));
}

TEST_P(RRefTest, ManyShortLivedHandlesLeaveNothing) {
  for (int i = 0; i < 200; ++i) {
    RRef<int> value = alice_.Remote<&Sum>(rpc::Rank{i % 3}, i, 1);
    if (i % 2 == 0) {
      EXPECT_EQ(*alice_.Async<&Chain>(rpc::Rank{(i / 2) % 3}, value, 2).Await(),
                i + 1);
    }
  }
}

TEST_P(RRefTest, HandlesMayOutliveTheirAgent) {
  RRef<Counter> counter = CounterAt("bob");
  RRef<int> local = RRef<int>::Make(alice_, 1);
  cluster_.Kill("alice");
  EXPECT_THAT(counter.Async<&Counter::Get>().Await(),
              Fails(StatusCode::kFailedPrecondition, "shut down"));
  EXPECT_FALSE(local.LocalValue().ok());
  std::thread([counter = std::move(counter), local = std::move(local)] {
  }).join();
}

}  // namespace
}  // namespace baton::testing
