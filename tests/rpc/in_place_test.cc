// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rpc/agent.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

// Tensors that are moved into calls and results, over shared memory. Both
// workers are of this process, so that a block that both see has two addresses
// here: what is written at one is read at the other.
namespace baton::testing {
namespace {

using absl::StatusCode;

constexpr std::chrono::seconds kInPlacePatience{30};
constexpr int64_t kElements = 4000;  // 32 KB: two fit in the first segment

// What bob was sent.
std::vector<Tensor> shelf;
void Put(Tensor tensor) { shelf.push_back(std::move(tensor)); }
void PutAll(std::vector<Tensor> all, std::optional<Tensor> one,
            std::map<std::string, Tensor> named) {
  for (Tensor& tensor : all) Put(std::move(tensor));
  Put(std::move(*one));
  for (auto& [name, tensor] : named) Put(std::move(tensor));
}
void PutWith(int, Tensor tensor) { Put(std::move(tensor)); }
int Five() { return 5; }

// [result]
Tensor MakeResult(rpc::CallContext& call, double value) {
  Tensor result = call.EmptyForCaller({kElements}, {.dtype = DType::kF64});
  result.Fill(value);
  return result;  // nor is it copied here
}
// [end]
std::vector<Tensor> MakeResults(rpc::CallContext& call) {
  return {MakeResult(call, 1)};
}
Future<Tensor> MakeReadyResult(rpc::CallContext& call, double value) {
  return ReadyFuture<Tensor>(MakeResult(call, value));
}
Future<Tensor> kept_future;
Future<Tensor> MakeAndKeepReadyResult(rpc::CallContext& call, double value) {
  kept_future = MakeReadyResult(call, value);
  return kept_future;
}
Tensor kept_result;
Tensor MakeAndKeepResult(rpc::CallContext& call, double value) {
  kept_result = MakeResult(call, value);
  return kept_result;
}

void FillInPlace(rpc::Registry& registry) {
  registry.AddFunction<&Put>()
      .AddFunction<&PutAll>()
      .AddFunction<&PutWith>()
      .AddFunction<&Five>()
      .AddFunction<&MakeResult>()
      .AddFunction<&MakeResults>()
      .AddFunction<&MakeReadyResult>()
      .AddFunction<&MakeAndKeepReadyResult>()
      .AddFunction<&MakeAndKeepResult>();
}

rpc::TensorChannelInfo InfoOf(rpc::Agent& agent) {
  for (const auto& info : agent.GetDebugInfo().tensor_channels) {
    if (info.name == "shared memory") return info;
  }
  return {};
}

class InPlaceTest : public ::testing::Test {
 protected:
  ~InPlaceTest() override {
    shelf.clear();
    kept_result = Tensor();
    kept_future = {};
    cluster_.ExpectIdle();
  }
  void SetUp() override {
    const auto deadline = std::chrono::steady_clock::now() + kInPlacePatience;
    while (!InfoOf(alice()).open || !InfoOf(bob()).open) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      ASSERT_THAT(alice().Async<&Five>("bob").Await(), IsOk());
    }
  }

  rpc::Agent& alice() { return cluster_["alice"]; }
  rpc::Agent& bob() { return cluster_["bob"]; }
  // For bob, all elements the same.
  Tensor Made(double value) {
    auto made = alice().EmptyFor("bob", {kElements}, {.dtype = DType::kF64});
    EXPECT_THAT(made, IsOk());
    return made->Fill(value);
  }
  static bool Is(const Tensor& tensor, double value) {
    return tensor.ToVector<double>() == std::vector<double>(kElements, value);
  }
  // Of the last element at bob's is where the sender had it.
  static bool IsAt(const Tensor& there, const double* last_here) {
    there.Fill(-3);
    return *last_here == -3;
  }
  uint64_t InPlace() { return InfoOf(alice()).sent_in_place; }

  const std::shared_ptr<rpc::FaultPlan> faults_ =
      std::make_shared<rpc::FaultPlan>();
  LocalCluster cluster_{{.fill = FillInPlace,
                         .transports = MakerOf(TransportKind::kGrpc),
                         .faults = faults_}};
};

const double* LastOf(const Tensor& tensor) {
  return tensor.data<double>() + kElements - 1;
}

absl::Status SendABatch(rpc::Agent& agent) {
  // [argument]
  ASSIGN_OR_RETURN(Tensor batch, agent.EmptyFor("bob", {32, 3, 10, 10}));
  batch.Fill(4);  // read or decode into it
  const Future<void> put =
      agent.Async<&Put>("bob", std::move(batch));  // no copy
  // [end]
  return put.Await();
}

TEST_F(InPlaceTest, ABatchThatIsMadeForAWorkerIsNotCopied) {
  ASSERT_THAT(SendABatch(alice()), IsOk());
  EXPECT_EQ(shelf.at(0).ToVector<float>(), std::vector<float>(9600, 4));
  EXPECT_EQ(InPlace(), 1u);
}

TEST_F(InPlaceTest, AMovedArgumentArrivesWhereItWasMade) {
  Tensor tensor = Made(4);
  const double* last = LastOf(tensor);
  ASSERT_THAT(alice().Async<&Put>("bob", std::move(tensor)).Await(), IsOk());
  EXPECT_FALSE(tensor.defined());  // NOLINT(bugprone-use-after-move)
  ASSERT_EQ(shelf.size(), 1u);
  EXPECT_TRUE(Is(shelf[0], 4));
  EXPECT_TRUE(IsAt(shelf[0], last));
  EXPECT_EQ(InPlace(), 1u);
  EXPECT_EQ(InfoOf(alice()).leases, 1u);
}

TEST_F(InPlaceTest, AKeptArgumentIsCopiedAndTheSendersOwn) {
  const Tensor tensor = Made(4);
  ASSERT_THAT(alice().Async<&Put>("bob", tensor).Await(), IsOk());
  tensor.Fill(5);
  EXPECT_TRUE(Is(shelf.at(0), 4));
  EXPECT_FALSE(IsAt(shelf[0], LastOf(tensor)));
  EXPECT_TRUE(Is(tensor, 5));
  EXPECT_EQ(InPlace(), 0u);
}

TEST_F(InPlaceTest, ASecondHandleOrAViewMakesItACopy) {
  Tensor tensor = Made(4);
  const Tensor second = tensor;
  ASSERT_THAT(alice().Async<&Put>("bob", std::move(tensor)).Await(), IsOk());
  Tensor part = Made(6).Slice(0, 0, kElements - 1);
  ASSERT_THAT(alice().Async<&Put>("bob", std::move(part)).Await(), IsOk());
  second.Fill(5);
  EXPECT_TRUE(Is(shelf.at(0), 4));
  EXPECT_EQ(shelf.at(1).numel(), kElements - 1);
  EXPECT_EQ(shelf.at(1).Slice(0, 0, 1).Item(), 6);
  EXPECT_EQ(InPlace(), 0u);
}

TEST_F(InPlaceTest, MovedContainersTakeTheirTensorsAlong) {
  std::vector<Tensor> all;
  all.push_back(Made(1));
  std::optional<Tensor> one = Made(2);
  std::map<std::string, Tensor> named;
  named["x"] = Tensor::Full({kElements}, 3, {.dtype = DType::kF64});
  const double* last[] = {LastOf(all[0]), LastOf(*one)};
  ASSERT_THAT(alice()
                  .Async<&PutAll>("bob", std::move(all), std::move(one),
                                  std::move(named))
                  .Await(),
              IsOk());
  ASSERT_EQ(shelf.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Is(shelf[i], i + 1)) << i;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(IsAt(shelf[i], last[i])) << i;
  EXPECT_EQ(InPlace(), 2u);
}

TEST_F(InPlaceTest, AMovedArgumentWaitsForOneThatIsToCome) {
  const Promise<int> promise;
  Tensor tensor = Made(4);
  const double* last = LastOf(tensor);
  const auto put =
      alice().Async<&PutWith>("bob", promise.future(), std::move(tensor));
  promise.Set(1);
  ASSERT_THAT(put.Await(), IsOk());
  EXPECT_TRUE(IsAt(shelf.at(0), last));
  EXPECT_EQ(InPlace(), 1u);
}

TEST_F(InPlaceTest, WhatIsMovedToTheWorkerItselfIsNotCopiedEither) {
  auto tensor = alice().EmptyFor("alice", {kElements}, {.dtype = DType::kF64});
  ASSERT_THAT(tensor, IsOk());
  tensor->Fill(4);
  const double* last = LastOf(*tensor);
  ASSERT_THAT(alice().Async<&Put>("alice", *std::move(tensor)).Await(), IsOk());
  EXPECT_TRUE(Is(shelf.at(0), 4));
  EXPECT_EQ(LastOf(shelf[0]), last);
}

TEST_F(InPlaceTest, AResultMadeForTheCallerIsNotCopied) {
  const auto one = alice().Async<&MakeResult>("bob", 7).Await();
  ASSERT_THAT(one, IsOk());
  EXPECT_TRUE(Is(*one, 7));
  EXPECT_EQ(InfoOf(bob()).sent_in_place, 1u);
  const auto all = alice().Async<&MakeResults>("bob").Await();
  ASSERT_THAT(all, IsOk());
  EXPECT_TRUE(Is(all->at(0), 1));
  EXPECT_TRUE(Is(*one, 7));
  EXPECT_EQ(InfoOf(bob()).sent_in_place, 2u);
}

TEST_F(InPlaceTest, AFutureThatIsReadyAndTheCallsAloneIsNotCopied) {
  const auto got = alice().Async<&MakeReadyResult>("bob", 7).Await();
  ASSERT_THAT(got, IsOk());
  EXPECT_TRUE(Is(*got, 7));
  EXPECT_EQ(InfoOf(bob()).sent_in_place, 1u);
  const auto kept = alice().Async<&MakeAndKeepReadyResult>("bob", 9).Await();
  ASSERT_THAT(kept, IsOk());
  kept->Fill(1);
  EXPECT_TRUE(Is(*kept_future.Await(), 9));
  EXPECT_EQ(InfoOf(bob()).sent_in_place, 1u);
}

TEST_F(InPlaceTest, AResultThatIsKeptOrFetchedIsCopied) {
  const auto got = alice().Async<&MakeAndKeepResult>("bob", 7).Await();
  ASSERT_THAT(got, IsOk());
  kept_result.Fill(8);
  EXPECT_TRUE(Is(*got, 7));
  const auto there = alice().Remote<&MakeResult>("bob", 9);
  for (int i = 0; i < 2; ++i) {
    const auto fetched = there.Fetch().Await();
    ASSERT_THAT(fetched, IsOk());
    EXPECT_TRUE(Is(*fetched, 9));
    fetched->Fill(1);
  }
  EXPECT_EQ(InfoOf(bob()).sent_in_place, 0u);
}

TEST_F(InPlaceTest, ALocalCallerGetsAnOrdinaryTensor) {
  const auto got = alice().Async<&MakeResult>("alice", 7).Await();
  ASSERT_THAT(got, IsOk());
  EXPECT_TRUE(Is(*got, 7));
}

TEST_F(InPlaceTest, WhereThereIsNoPlaceItIsAnOrdinaryTensor) {
  for (const Shape& shape :
       {Shape({4}), Shape({}), Shape({0}), Shape({2048}), Shape({1 << 20})}) {
    auto tensor = alice().EmptyFor("bob", shape, {.dtype = DType::kF64});
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->shape(), shape);
    tensor->Fill(2);
    const size_t before = shelf.size();
    ASSERT_THAT(alice().Async<&Put>("bob", *std::move(tensor)).Await(), IsOk());
    EXPECT_EQ(shelf.at(before).shape(), shape);
  }
  EXPECT_EQ(InPlace(), 0u);
}

TEST_F(InPlaceTest, MistakesAreErrors) {
  EXPECT_EQ(alice().EmptyFor("carol", {kElements}).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(
      alice()
          .EmptyFor("bob", {kElements}, {.format = MemoryFormat::kChannelsLast})
          .status()
          .code(),
      StatusCode::kInvalidArgument);
  EXPECT_EQ(alice().EmptyFor("bob", {int64_t{1} << 61, 2}).status().code(),
            StatusCode::kInvalidArgument);
}

// The peer that it was made for is gone, and another of its name is there.
TEST_F(InPlaceTest, WhatWasMadeForAnEarlierIncarnationIsCopied) {
  Tensor tensor = Made(4);
  cluster_.Restart("bob");
  const auto deadline = std::chrono::steady_clock::now() + kInPlacePatience;
  while (!alice().Async<&Five>("bob").Await().ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  ASSERT_THAT(alice().Async<&Put>("bob", std::move(tensor)).Await(), IsOk());
  EXPECT_TRUE(Is(shelf.at(0), 4));
  EXPECT_EQ(InPlace(), 0u);
}

TEST_F(InPlaceTest, AMessageThatComesTwiceIsWholeBothTimes) {
  faults_->Add({.kind = rpc::FaultKind::kDuplicate, .matches = nullptr});
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(alice().Async<&Put>("bob", Made(i)).Await(), IsOk());
    const auto result = alice().Async<&MakeResult>("bob", i).Await();
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(Is(*result, i));
    EXPECT_TRUE(Is(shelf.back(), i));
  }
  faults_->Clear();
}

TEST_F(InPlaceTest, ACallThatNeverLeavesGivesTheRoomBack) {
  faults_->Add({.kind = rpc::FaultKind::kDrop, .matches = nullptr});
  for (int i = 0; i < 20; ++i) {
    rpc::CancelSource cancel;
    const auto put =
        alice().Async<&Put>("bob", {.cancel = cancel.token()}, Made(i));
    cancel.Cancel(absl::CancelledError("enough"));
    EXPECT_FALSE(put.Await().ok());
  }
  faults_->Clear();
  EXPECT_EQ(InfoOf(alice()).made_bytes, 0u);
  EXPECT_EQ(InfoOf(alice()).leases, 0u);
}

}  // namespace
}  // namespace baton::testing
