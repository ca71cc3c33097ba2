// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "rpc/agent.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;

// What a test and its handlers share.
struct Stage {
  Gate entered;
  Gate cancelled;
  Promise<void> gate;
  std::atomic<int> hogs{0};
  std::atomic<bool> released{false};
  std::atomic<int64_t> remaining_ms{-1};
};
std::shared_ptr<Stage> stage;

// Holds a worker thread without telling the pool.
int Hog() {
  const std::shared_ptr<Stage> here = stage;
  if (++here->hogs == 2) here->entered.Open();
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!here->released && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  return 1;
}
Future<int> Never(rpc::CallContext& call) {
  call.OnCancel([](const absl::Status&) { stage->cancelled.Open(); });
  stage->remaining_ms = call.remaining().count();
  stage->entered.Open();
  return stage->gate.future().Then([] { return 1; });
}
Future<int> CallsNever(rpc::CallContext& call, std::string worker) {
  return call.agent().Async<&Never>(worker, call);
}
struct Slow {
  static absl::StatusOr<std::unique_ptr<Slow>> Make();
  int Get() { return 5; }
  using Exports = rpc::Methods<&Slow::Make, &Slow::Get>;
};
absl::StatusOr<std::unique_ptr<Slow>> Slow::Make() {
  stage->entered.Open();
  RETURN_IF_ERROR(stage->gate.future().Await());
  return std::make_unique<Slow>();
}

void FillForDeadlines(rpc::Registry& registry) {
  FillCounter(registry);
  registry.Add<Slow>();
  registry.AddFunction<&Hog>();
  registry.AddFunction<&Never>();
  registry.AddFunction<&CallsNever>();
}

class DeadlineTest : public ::testing::Test {
 protected:
  DeadlineTest() { stage = std::make_shared<Stage>(); }
  // Makes calls that are not answered, of ever longer limits until one entered
  // Never before its time was up: a busy machine may be late. Gives the limit.
  static std::chrono::milliseconds LimitEntered(
      const std::function<Future<int>(std::chrono::milliseconds)>& call) {
    for (auto limit = 100ms;; limit *= 4) {
      EXPECT_THAT(call(limit).Await(),
                  Fails(StatusCode::kDeadlineExceeded, ""));
      if (stage->entered.Await(0ms) || limit > kMostPatience) return limit;
    }
  }
  ~DeadlineTest() override {
    stage->released = true;
    stage->gate.Set(absl::OkStatus());
    cluster_.ExpectIdle();
  }
  static constexpr auto kMostPatience = 6s;
  LocalCluster cluster_{{.names = {"alice", "bob", "carol"},
                         .fill = &FillForDeadlines,
                         .worker_threads = 1}};
  rpc::Agent& alice_ = cluster_["alice"];
};

// Whether the caller or the callee finds out first is up to the machine.
TEST_F(DeadlineTest, ALateAnswerIsAnErrorThatNamesWorkerAndMethod) {
  EXPECT_THAT(alice_.Async<&Never>("bob", {.timeout = 30ms}).Await(),
              Fails(StatusCode::kDeadlineExceeded, "bob, Never: "));
}

TEST_F(DeadlineTest, TheDefaultCountsForCallsThatNameNone) {
  Future<int> before = alice_.Async<&Never>("bob");
  alice_.set_default_timeout(30ms);
  EXPECT_THAT(alice_.Async<&Never>("bob").Await(),
              Fails(StatusCode::kDeadlineExceeded, "bob, Never: "));
  EXPECT_FALSE(before.ready());
  Future<int> unlimited = alice_.Async<&Never>("bob", {.timeout = kNoLimit});
  stage->gate.Set(absl::OkStatus());
  EXPECT_THAT(before.Await(), IsOk());
  EXPECT_THAT(unlimited.Await(), IsOk());
}

// One timer serves all deadlines, so the order in which they come must not
// matter.
TEST_F(DeadlineTest, EachCallEndsByItsOwnDeadline) {
  std::vector<Future<int>> calls;
  for (const auto limit : {90ms, 30ms, 60ms}) {
    calls.push_back(alice_.Async<&Never>("bob", {.timeout = limit}));
  }
  const Future<int> unlimited =
      alice_.Async<&Never>("bob", {.timeout = kNoLimit});
  for (const size_t next : {1, 2, 0}) {
    EXPECT_THAT(calls[next].Await(10s),
                Fails(StatusCode::kDeadlineExceeded, "bob, Never: "));
  }
  EXPECT_FALSE(unlimited.ready());
  stage->gate.Set(absl::OkStatus());
  EXPECT_THAT(unlimited.Await(), IsOk());
}

TEST_F(DeadlineTest, LimitsBeyondTheClockDoNotOverflowIt) {
  for (const char* to : {"alice", "bob"}) {
    EXPECT_THAT(
        alice_.Async<&Sum>(to, {.timeout = kNoLimit - 1ms}, 1, 2).Await(5s),
        IsOk());
    EXPECT_THAT(
        alice_.Async<&Never>(to, {.timeout = std::chrono::milliseconds::min()})
            .Await(5s),
        Fails(StatusCode::kDeadlineExceeded, "Never: "));
  }
}

TEST_F(DeadlineTest, ABusyPoolDelaysNoDeadline) {
  Future<int> busy = alice_.Async<&Hog>("bob");
  Future<int> own = alice_.Async<&Hog>("alice");
  ASSERT_TRUE(stage->entered.Await());
  EXPECT_THAT(alice_.Async<&Sum>("bob", {.timeout = 50ms}, 1, 2).Await(),
              Fails(StatusCode::kDeadlineExceeded, "bob, Sum"));
  // It did not wait for a thread.
  EXPECT_FALSE(busy.ready());
  EXPECT_FALSE(own.ready());
  stage->released = true;
  EXPECT_THAT(busy.Await(), IsOk());
  EXPECT_THAT(own.Await(), IsOk());
}

TEST_F(DeadlineTest, TheCalleeIsToldThatItsCallerGaveUp) {
  const auto limit = LimitEntered([&](std::chrono::milliseconds timeout) {
    return alice_.Async<&Never>("bob", {.timeout = timeout});
  });
  ASSERT_TRUE(stage->entered.Await(0ms));
  EXPECT_LE(stage->remaining_ms, limit.count());
  EXPECT_GE(stage->remaining_ms, 0);
  EXPECT_TRUE(stage->cancelled.Await());
}

TEST_F(DeadlineTest, ACancelledCallFailsAtOnceAndReachesNestedOnes) {
  rpc::CancelSource cancel;
  Future<int> call = alice_.Async<&CallsNever>(
      "bob", {.timeout = kNoLimit, .cancel = cancel.token()}, "carol");
  ASSERT_TRUE(stage->entered.Await());
  cancel.Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(call.Await(), Fails(StatusCode::kCancelled, "enough"));
  EXPECT_TRUE(stage->cancelled.Await());
}

TEST_F(DeadlineTest, ACallThatIsCancelledBeforeIsNotSent) {
  rpc::CancelSource cancel;
  cancel.Cancel();
  EXPECT_THAT(alice_.Async<&Never>("bob", {.cancel = cancel.token()}).Await(),
              Fails(StatusCode::kCancelled, ""));
}

TEST_F(DeadlineTest, NestedCallsInheritWhatIsLeft) {
  const auto limit = LimitEntered([&](std::chrono::milliseconds timeout) {
    return alice_.Async<&CallsNever>("bob", {.timeout = timeout}, "carol");
  });
  ASSERT_TRUE(stage->entered.Await(0ms));
  EXPECT_LE(stage->remaining_ms, limit.count());
  EXPECT_TRUE(stage->cancelled.Await());
}

TEST_F(DeadlineTest, ACallThatWaitsForItsArgumentHasADeadlineToo) {
  Promise<int> argument;
  EXPECT_THAT(alice_.Async<&Sum>("bob", {.timeout = 30ms}, argument.future(), 1)
                  .Await(),
              Fails(StatusCode::kDeadlineExceeded, "bob, Sum"));
}

TEST_F(DeadlineTest, ASlowConstructorDelaysNeitherTheHandleNorItsConfirmation) {
  Future<RRef<Slow>> created =
      rpc::Create<Slow>(alice_, "bob", rpc::CallOptions{.timeout = kNoLimit});
  ASSERT_TRUE(stage->entered.Await());
  EXPECT_FALSE(created.ready());
  stage->gate.Set(absl::OkStatus());
  EXPECT_EQ(*created.Await()->Async<&Slow::Get>().Await(), 5);
}

TEST_F(DeadlineTest, ACallToAnObjectThatIsBeingMadeEndsByItsDeadline) {
  RRef<int> slow = alice_.Remote<&Never>("bob");
  EXPECT_THAT(slow.Fetch(rpc::CallOptions{.timeout = 30ms}).Await(),
              Fails(StatusCode::kDeadlineExceeded, "RRef<int>::Fetch"));
  // The owner knows of it meanwhile, though it is not made.
  const auto end = std::chrono::steady_clock::now() + 8s;
  while (!slow.confirmed() && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(slow.confirmed());
  stage->gate.Set(absl::OkStatus());
  EXPECT_EQ(*slow.Fetch().Await(), 1);
}

}  // namespace
}  // namespace baton::testing
