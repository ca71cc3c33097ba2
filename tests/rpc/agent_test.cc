// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "rpc/call_options.h"
#include "rpc/introspection.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
// Nobody can decode it.
struct Unreadable {};
}  // namespace baton::testing

template <>
struct baton::rpc::Codec<baton::testing::Unreadable> {
  static void Encode(Encoder& encoder, const baton::testing::Unreadable&) {
    encoder.Put(1);
  }
  static baton::testing::Unreadable Decode(Decoder&) {
    throw Error(absl::DataLossError("unreadable"));
  }
};

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Nothing() {}
std::vector<Tensor> Reverse(std::vector<Tensor> tensors,
                            std::map<std::string, Tensor> named) {
  std::vector<Tensor> out(tensors.rbegin(), tensors.rend());
  for (auto& [name, tensor] : named) out.push_back(tensor);
  return out;
}
Tensor Overwrite(Tensor x) {
  x.Fill(7);
  return x;
}
int Throw(std::string text) { throw Error(absl::OutOfRangeError(text)); }
int ThrowStd() { throw std::runtime_error("tab\tquote\" \x01"); }
int ThrowExhausted() {
  throw Error(absl::ResourceExhaustedError("the tank is empty"));
}
int Unregistered() { return 0; }

Unreadable GiveUnreadable() { return {}; }

// Handlers that answer later.
Future<int> Later(rpc::CallContext& call, int x) {
  return call.agent().Async<&Sum>("alice", call, x, 1);
}
Future<int> FailsLater(rpc::CallContext& call) {
  Promise<int> promise;
  call.agent().executor().Post(
      [promise] { promise.Set(absl::DataLossError("later")); });
  return promise.future();
}
Future<int> ThrowsAtOnce(bool) { throw std::runtime_error("at once"); }

// Calls back and forth until `depth` is 0, one waiting handler a level.
absl::StatusOr<int> Nested(rpc::CallContext& call, std::string other,
                           int depth) {
  if (depth == 0) return 0;
  ASSIGN_OR_RETURN(
      int below,
      call.agent()
          .Async<&Nested>(other, call, call.agent().self().name, depth - 1)
          .Await());
  return below + 1;
}

void FillForAgents(rpc::Registry& registry) {
  FillCounter(registry);
  registry.AddFunction<&Nothing>();
  registry.AddFunction<&Reverse>();
  registry.AddFunction<&Overwrite>();
  registry.AddFunction<&Throw>();
  registry.AddFunction<&ThrowStd>();
  registry.AddFunction<&ThrowExhausted>();
  registry.AddFunction<&Later>();
  registry.AddFunction<&FailsLater>();
  registry.AddFunction<&ThrowsAtOnce>();
  registry.AddFunction<&Nested>();
  registry.AddFunction<&GiveUnreadable>();
}

class AgentTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  ~AgentTest() override { cluster_.ExpectIdle(); }
  LocalCluster cluster_{{.names = {"alice", "bob", "carol"},
                         .fill = &FillForAgents,
                         .transports = MakerOf(GetParam())}};
  rpc::Agent& alice_ = cluster_["alice"];
};
INSTANTIATE_TEST_SUITE_P(, AgentTest, kTransports, TransportName);

TEST_P(AgentTest, CallsAWorkerByNameRankAndInfo) {
  EXPECT_EQ(*alice_.Async<&Sum>("bob", 1, 2).Await(), 3);
  EXPECT_EQ(*alice_.Async<&Sum>(rpc::Rank{2}, 1, 2).Await(), 3);
  EXPECT_EQ(*alice_.Async<&Sum>(cluster_["bob"].self(), 1, 2).Await(), 3);
  EXPECT_EQ(*alice_.Async<&WhoCalls>("bob").Await(), "alice");
}

TEST_P(AgentTest, CallsItself) {
  EXPECT_EQ(*alice_.Async<&Sum>("alice", 1, 2).Await(), 3);
  EXPECT_EQ(*alice_.Async<&WhoCalls>(rpc::Rank{0}).Await(), "alice");
  RRef<int> sum = alice_.Remote<&Sum>("alice", 3, 4);
  EXPECT_TRUE(sum.is_owner());
  EXPECT_EQ(*sum.Fetch().Await(), 7);
}

TEST_P(AgentTest, KnowsTheWorkers) {
  ASSERT_EQ(alice_.workers().size(), 3u);
  EXPECT_EQ(alice_.workers()[1].name, "bob");
  EXPECT_EQ(alice_.Find("carol")->rank, rpc::Rank{2});
  EXPECT_THAT(alice_.Find("nobody"),
              Fails(StatusCode::kNotFound, "there are: alice, bob, carol"));
}

TEST_P(AgentTest, UnknownWorkerIsAnErrorThatNamesIt) {
  EXPECT_THAT(alice_.Async<&Sum>("dave", 1, 2).Await(),
              Fails(StatusCode::kNotFound, "no worker is called dave"));
  EXPECT_THAT(alice_.Async<&Sum>(rpc::Rank{9}, 1, 2).Await(),
              Fails(StatusCode::kNotFound, "rank 9"));
  EXPECT_THAT(alice_.Remote<&Sum>("dave", 1, 2).Fetch().Await(),
              Fails(StatusCode::kNotFound, "no worker is called dave"));
  EXPECT_THAT(rpc::Create<Counter>(alice_, "dave", 1).Await(),
              Fails(StatusCode::kNotFound, "no worker is called dave"));
}

TEST_P(AgentTest, UnregisteredFunctionIsAnErrorThatNamesIt) {
  EXPECT_THAT(
      alice_.Async<&Unregistered>("bob").Await(),
      Fails(StatusCode::kUnimplemented, "bob, Unregistered: not registered"));
  EXPECT_THAT(alice_.Async<&Unregistered>("alice").Await(),
              Fails(StatusCode::kUnimplemented, "Unregistered"));
}

TEST_P(AgentTest, VoidFunctionGivesAFutureOfNothing) {
  EXPECT_THAT(alice_.Async<&Nothing>("bob").Await(), IsOk());
  EXPECT_THAT(alice_.Remote<&Nothing>("bob").Ready().Await(), IsOk());
}

TEST_P(AgentTest, TensorsTravelInContainersWhateverTheirStrides) {
  Tensor grid = Tensor::Arange(6, DType::kF32).Reshape({2, 3});
  auto result =
      alice_
          .Async<&Reverse>("bob",
                           std::vector<Tensor>{grid.Transpose(0, 1), Tensor()},
                           std::map<std::string, Tensor>{{"x", grid}})
          .Await();
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->size(), 3u);
  EXPECT_FALSE((*result)[0].defined());
  EXPECT_EQ((*result)[1].shape(), Shape({3, 2}));
  EXPECT_THAT((*result)[1].ToVector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT((*result)[2].ToVector<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_P(AgentTest, ArgumentsAreCopiesEvenForOneself) {
  for (const char* to : {"alice", "bob"}) {
    Tensor x = Tensor::Ones({2});
    auto result = alice_.Async<&Overwrite>(to, x).Await();
    EXPECT_THAT(result->ToVector<float>(), ElementsAre(7, 7));
    EXPECT_THAT(x.ToVector<float>(), ElementsAre(1, 1)) << to;
  }
}

TEST_P(AgentTest, ExceptionsBecomeErrorsOfTheCaller) {
  EXPECT_THAT(alice_.Async<&Throw>("bob", "[conv2d] bad shape").Await(),
              Fails(StatusCode::kOutOfRange, "bob, Throw: [conv2d] bad shape"));
  EXPECT_THAT(alice_.Async<&ThrowStd>("bob").Await(),
              Fails(StatusCode::kInternal, "tab\tquote\" \x01"));
}

TEST_P(AgentTest, AnAnswerWhoseDecodingThrowsIsAnErrorThatNamesTheCall) {
  const auto given = alice_.Remote<&GiveUnreadable>("bob");
  for (const auto& answer :
       {alice_.Async<&GiveUnreadable>("bob").Await(), given.Fetch().Await()}) {
    EXPECT_THAT(answer, Fails(StatusCode::kDataLoss, "unreadable"));
    const auto error = rpc::CallErrorOf(answer.status());
    ASSERT_TRUE(error.has_value()) << answer.status();
    EXPECT_EQ(error->worker, "bob");
  }
  EXPECT_THAT(alice_.Async<&GiveUnreadable>("bob").Await(),
              Fails(StatusCode::kDataLoss, "bob, GiveUnreadable: "));
}

TEST_P(AgentTest, ErrorsNameWorkerAndMethodForPrograms) {
  auto error =
      rpc::CallErrorOf(alice_.Async<&Throw>("bob", "x").Await().status());
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->worker, "bob");
  EXPECT_EQ(error->method, "Throw");
  EXPECT_FALSE(error->retryable);
  error = rpc::CallErrorOf(alice_.Async<&Sum>("dave", 1, 2).Await().status());
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(error->retryable);
}

// Its code is that of a call which was refused.
TEST_P(AgentTest, AHandlerThatFailsForWantOfAResourceHasRun) {
  for (const std::string to : {"alice", "bob"}) {
    const absl::Status status =
        alice_.Async<&ThrowExhausted>(to).Await().status();
    EXPECT_THAT(status, Fails(StatusCode::kResourceExhausted, "tank"));
    const auto error = rpc::CallErrorOf(status);
    ASSERT_TRUE(error.has_value()) << status;
    EXPECT_FALSE(error->retryable) << to;
  }
}

TEST_P(AgentTest, AFunctionThatIsNotThereHasNotRun) {
  const auto error =
      rpc::CallErrorOf(alice_.Async<&Unregistered>("bob").Await().status());
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(error->retryable);
}

TEST_P(AgentTest, FuturesStandForArguments) {
  Future<int> first = alice_.Async<&Sum>("bob", 1, 2);
  Future<int> second = alice_.Async<&Sum>("carol", first, 10);
  EXPECT_EQ(*alice_.Async<&Sum>("bob", first, second).Await(), 16);
  Future<std::string> text = alice_.Async<&WhoCalls>("bob");
  EXPECT_THAT(alice_.Async<&Throw>("bob", text).Await(),
              Fails(StatusCode::kOutOfRange, "alice"));
}

TEST_P(AgentTest, AFutureThatFailsFailsTheCallThatWaitsForIt) {
  Future<int> bad = alice_.Async<&Throw>("bob", "broken");
  EXPECT_THAT(alice_.Async<&Sum>("carol", 1, bad).Await(),
              Fails(StatusCode::kOutOfRange, "argument 2: bob, Throw: broken"));
  EXPECT_THAT(alice_.Async<&Sum>("carol", Future<int>(), 1).Await(),
              Fails(StatusCode::kInvalidArgument, "argument 1"));
}

TEST_P(AgentTest, AHandlerMayAnswerLater) {
  EXPECT_EQ(*alice_.Async<&Later>("bob", 5).Await(), 6);
  EXPECT_THAT(alice_.Async<&FailsLater>("bob").Await(),
              Fails(StatusCode::kDataLoss, "bob, FailsLater: later"));
  EXPECT_THAT(alice_.Async<&ThrowsAtOnce>("bob", true).Await(),
              Fails(StatusCode::kInternal, "at once"));
  RRef<int> kept = alice_.Remote<&Later>("bob", 6);
  EXPECT_EQ(*kept.Fetch().Await(), 7);
  RRef<int> failed = alice_.Remote<&FailsLater>("bob");
  EXPECT_THAT(failed.Fetch().Await(), Fails(StatusCode::kDataLoss, "later"));
}

TEST_P(AgentTest, ManyCallsOverlap) {
  std::vector<Future<int>> sums;
  for (int i = 0; i < 2000; ++i) {
    sums.push_back(alice_.Async<&Sum>(i % 2 ? "bob" : "carol", i, 1));
  }
  auto all = WaitAll(sums).Await();
  ASSERT_THAT(all, IsOk());
  for (int i = 0; i < 2000; ++i) EXPECT_EQ((*all)[i], i + 1);
}

TEST_P(AgentTest, CallsFromManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        auto sum = cluster_[t % 3].Async<&Sum>(rpc::Rank{i % 3}, t, i).Await();
        if (sum.ok() && *sum == t + i) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

TEST_P(AgentTest, ContinuationsMayCall) {
  Future<int> chained = alice_.Async<&Sum>("bob", 1, 1).Then([&](int x) {
    return alice_.Async<&Sum>("carol", x, 1).Then([&](int y) {
      return *alice_.Async<&Sum>("bob", y, 1).Await();
    });
  });
  EXPECT_EQ(*chained.Await(), 4);
}

TEST_P(AgentTest, AnswersIntrospectionUnasked) {
  RRef<Counter> counter = *rpc::Create<Counter>(alice_, "bob", 1).Await();
  auto info = alice_.Async<&rpc::Introspection::Describe>("bob").Await();
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->self.name, "bob");
  ASSERT_EQ(info->objects.size(), 1u);
  EXPECT_EQ(info->objects[0].type, "Counter");
  EXPECT_THAT(info->objects[0].holders, ElementsAre("alice"));
  ASSERT_EQ(info->incoming.size(), 1u);
  EXPECT_EQ(info->incoming[0].method, "Describe");
  EXPECT_THAT(info->ToString(), HasSubstr("held by [alice]"));
  EXPECT_EQ(alice_.Async<&rpc::Introspection::Workers>("bob").Await()->size(),
            3u);
}

TEST_P(AgentTest, KeepsAServicePerLayer) {
  struct Layer {
    int x = 0;
  };
  EXPECT_EQ(alice_.service<Layer>(), nullptr);
  alice_.SetService(std::make_shared<Layer>(Layer{4}));
  EXPECT_EQ(alice_.service<Layer>()->x, 4);
  EXPECT_EQ(cluster_["bob"].service<Layer>(), nullptr);
}

TEST(Agent, OneThreadServesNestedCallsOfDepthEight) {
  LocalCluster cluster({.fill = &FillForAgents, .worker_threads = 1});
  EXPECT_EQ(*cluster["alice"].Async<&Nested>("bob", "alice", 8).Await(), 8);
  EXPECT_EQ(*cluster["alice"].Async<&Nested>("alice", "alice", 8).Await(), 8);
  cluster.ExpectIdle();
}

TEST(Agent, AClusterOfOneWorks) {
  LocalCluster cluster({.names = {"alone"}, .fill = &FillForAgents});
  EXPECT_EQ(*cluster[0].Async<&Sum>("alone", 1, 2).Await(), 3);
  EXPECT_THAT(rpc::Create<Counter>(cluster[0], "alone", 1).Await(), IsOk());
  cluster.ExpectIdle();
  cluster.Shutdown();
}

rpc::WorkerInfo Named(const std::string& name, uint64_t incarnation = 7) {
  rpc::WorkerInfo info;
  info.name = name;
  info.incarnation = incarnation;
  return info;
}

absl::Status StartWith(rpc::AgentOptions options, rpc::Registry registry = {}) {
  rpc::InProcessNetwork network;
  return rpc::Agent::Start(std::move(options), std::move(registry),
                           network.NewTransport())
      .status();
}

TEST(Agent, RefusesBadNames) {
  EXPECT_THAT(StartWith({.self = Named("")}),
              Fails(StatusCode::kInvalidArgument, "empty"));
  EXPECT_THAT(StartWith({.self = Named("a b")}),
              Fails(StatusCode::kInvalidArgument, "a b"));
  EXPECT_THAT(StartWith({.self = Named(std::string(128, 'x'))}),
              Fails(StatusCode::kInvalidArgument, "127"));
  EXPECT_THAT(StartWith({.self = Named("Az0-_:.")}), IsOk());
}

TEST(Agent, RefusesOptionsThatCannotWork) {
  EXPECT_THAT(StartWith({.self = Named("a"), .worker_threads = 0}),
              Fails(StatusCode::kInvalidArgument, "worker_threads"));
  EXPECT_THAT(StartWith({.self = Named("a", 0)}),
              Fails(StatusCode::kInvalidArgument, "incarnation"));
  EXPECT_THAT(
      StartWith({.self = Named("a"), .peers = {Named("b", 8), Named("b", 9)}}),
      Fails(StatusCode::kInvalidArgument, "two workers are called b"));
  EXPECT_THAT(StartWith({.self = Named("a"), .peers = {Named("a", 9)}}),
              Fails(StatusCode::kInvalidArgument, "called a"));
}

TEST(Agent, RefusesARegistryWithDoubles) {
  rpc::Registry registry;
  registry.Add<Counter>();
  registry.Add<Counter>();
  EXPECT_THAT(StartWith({.self = Named("a")}, registry),
              Fails(StatusCode::kAlreadyExists, "Counter"));
}

}  // namespace
}  // namespace baton::testing
