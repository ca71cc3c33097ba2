// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/future.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace baton {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

TEST(Future, AwaitGivesTheValueAgainAndAgain) {
  Promise<int> promise;
  const Future<int> future = promise.future();
  EXPECT_FALSE(future.ready());
  std::thread setter([promise] { promise.Set(7); });
  EXPECT_EQ(future.Await().value(), 7);
  EXPECT_EQ(future.Await().value(), 7);
  EXPECT_TRUE(future.ready());
  setter.join();
}

TEST(Future, AwaitEndsAtItsTimeoutAndTheFutureStaysUsable) {
  Promise<void> promise;
  const Future<void> future = promise.future();
  EXPECT_TRUE(absl::IsDeadlineExceeded(future.Await(milliseconds(1))));
  EXPECT_TRUE(absl::IsDeadlineExceeded(future.Await(milliseconds(-5))));
  promise.Set(absl::OkStatus());
  EXPECT_TRUE(future.Await(milliseconds(0)).ok());
}

TEST(Future, AwaitTakesLimitsThatTheClockCannotHold) {
  Promise<int> promise;
  std::thread setter([promise] { promise.Set(1); });
  EXPECT_EQ(promise.future().Await(kNoLimit).value(), 1);
  EXPECT_EQ(promise.future().Await(kNoLimit - milliseconds(1)).value(), 1);
  setter.join();
}

TEST(Future, TheOnlyHandleOfAReadyResultTakesItAlong) {
  const auto value = std::make_shared<int>(7);
  auto future = ReadyFuture<std::shared_ptr<int>>(value);
  auto second = future;
  EXPECT_FALSE(std::move(second).TakeIfAlone().has_value());
  EXPECT_EQ(second.Await().value(), value);  // NOLINT(bugprone-use-after-move)
  second = {};
  const auto taken = std::move(future).TakeIfAlone();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->value(), value);
  EXPECT_EQ(value.use_count(), 2);  // here, and in what was taken
  EXPECT_FALSE(future.valid());     // NOLINT(bugprone-use-after-move)
}

TEST(Future, IsNotTakenWhileAPromiseCanSetItOrHasNotYet) {
  Promise<int> promise;
  EXPECT_FALSE(promise.future().TakeIfAlone().has_value());
  promise.Set(1);
  EXPECT_FALSE(promise.future().TakeIfAlone().has_value());
  EXPECT_EQ(promise.future().Await().value(), 1);
}

struct Counted final : ValueSource<int> {
  Future<int> Bring() override {
    ++asked;
    return promise.future();
  }
  std::atomic<int> asked{0};
  Promise<int> promise;
};

TEST(Future, OfASourceAsksOnceSomebodyWantsTheValue) {
  const auto source = std::make_shared<Counted>();
  const auto future = Future<int>::From(source, nullptr);
  EXPECT_TRUE(future.valid());
  EXPECT_EQ(future.source(), source);
  EXPECT_EQ(Promise<int>().future().source(), nullptr);
  EXPECT_EQ(Future<int>().source(), nullptr);
  const Future<int> copy = future;
  EXPECT_EQ(source->asked, 0);
  EXPECT_FALSE(copy.ready());
  EXPECT_EQ(source->asked, 1);
  source->promise.Set(7);
  EXPECT_EQ(future.Await().value(), 7);
  EXPECT_EQ(copy.Then([](int n) { return n + 1; }).Await().value(), 8);
  EXPECT_EQ(source->asked, 1);
}

TEST(Future, OfASourceIsWantedByContinuationsAndByWaiting) {
  for (const bool waits : {false, true}) {
    const auto source = std::make_shared<Counted>();
    const auto future = Future<int>::From(source, nullptr);
    source->promise.Set(absl::InternalError("gone"));
    int heard = 0;
    if (waits) {
      EXPECT_TRUE(absl::IsInternal(future.Await().status()));
    } else {
      future.OnReady([&](const absl::StatusOr<int>&) { ++heard; });
    }
    EXPECT_EQ(heard, waits ? 0 : 1);
    EXPECT_EQ(source->asked, 1);
  }
}

TEST(Promise, TheFirstResultWins) {
  Promise<int> promise;
  EXPECT_TRUE(promise.Set(1));
  EXPECT_FALSE(promise.Set(absl::InternalError("late")));
  EXPECT_EQ(promise.future().Await().value(), 1);
}

TEST(Promise, DroppedUnsetCancels) {
  Future<int> future;
  EXPECT_FALSE(future.valid());
  {
    Promise<int> promise;
    const Promise<int> copy = promise;
    future = promise.future();
  }
  EXPECT_TRUE(absl::IsCancelled(future.Await().status()));
}

TEST(Promise, MayBeDroppedByAContinuation) {
  auto promise = std::make_unique<Promise<int>>();
  int calls = 0;
  promise->future().OnReady([&](const absl::StatusOr<int>&) {
    promise.reset();
    ++calls;
  });
  promise->future().OnReady(
      [&](const absl::StatusOr<int>& result) { calls += *result; });
  promise->Set(10);
  EXPECT_EQ(calls, 11);
}

TEST(Future, ThenTakesAllFourKindsOfResult) {
  const Future<int> two = ReadyFuture<int>(2);
  EXPECT_EQ(two.Then([](int x) { return x + 1; }).Await().value(), 3);
  EXPECT_EQ(two.Then([](int x) -> absl::StatusOr<double> { return x * 1.5; })
                .Await()
                .value(),
            3);
  EXPECT_EQ(
      two.Then([](int x) { return ReadyFuture<int>(x * 5); }).Await().value(),
      10);
  EXPECT_EQ(two.Then([](int) { return absl::NotFoundError("gone"); }).Await(),
            absl::NotFoundError("gone"));
  int seen = 0;
  EXPECT_TRUE(two.Then([&](int x) { seen = x; }).Await().ok());
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(ReadyFuture<void>(absl::OkStatus())
                .Then([] { return std::string("done"); })
                .Await()
                .value(),
            "done");
}

TEST(Future, ErrorsPassByContinuations) {
  const Future<int> failed = ReadyFuture<int>(absl::DataLossError("lost"));
  bool called = false;
  const auto after = failed.Then([&](int) { called = true; }).Then([] {
    return ReadyFuture<int>(1);
  });
  EXPECT_EQ(after.Await().status(), absl::DataLossError("lost"));
  EXPECT_FALSE(called);
}

TEST(Future, WhatAContinuationThrowsIsItsStatus) {
  const Future<int> one = ReadyFuture<int>(1);
  EXPECT_EQ(one.Then([](int) -> int { Fail("op", "bad"); }).Await().status(),
            absl::InvalidArgumentError("[op] bad"));
  EXPECT_EQ(one.Then([](int) -> Future<int> { throw std::runtime_error("x"); })
                .Await()
                .status(),
            absl::InternalError("x"));
  EXPECT_EQ(one.Then([](int) { return Future<int>(); }).Await().status().code(),
            absl::StatusCode::kInternal);
}

TEST(Future, LateContinuationsRunOnThePromisesExecutor) {
  auto pool = std::make_shared<ThreadPool>(1, "late");
  Promise<int> promise(pool);
  promise.Set(1);
  const auto where =
      promise.future().Then([](int) { return std::this_thread::get_id(); });
  EXPECT_NE(where.Await().value(), std::this_thread::get_id());
}

TEST(WaitAll, KeepsTheOrder) {
  std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (const auto& promise : promises) futures.push_back(promise.future());
  const auto all = WaitAll(futures);
  promises[2].Set(2);
  promises[0].Set(0);
  EXPECT_FALSE(all.ready());
  promises[1].Set(1);
  EXPECT_THAT(all.Await().value(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(WaitAll(std::vector<Future<int>>{}).Await().value().empty());
  EXPECT_TRUE(WaitAll(std::vector<Future<void>>{}).Await().ok());
}

TEST(WaitAll, FailsAsSoonAsOneFails) {
  Promise<void> slow;
  Promise<void> broken;
  const auto all = WaitAll({slow.future(), broken.future()});
  broken.Set(absl::AbortedError("no"));
  EXPECT_EQ(all.Await(milliseconds(1000)), absl::AbortedError("no"));
}

TEST(Future, SettersContinuationsAndWaitersMayRace) {
  for (int round = 0; round < 200; ++round) {
    Promise<int> promise;
    std::atomic<int> calls{0};
    std::atomic<int> wins{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] { wins += promise.Set(i) ? 1 : 0; });
      threads.emplace_back([&] {
        promise.future().OnReady([&](const auto&) { ++calls; });
        (void)promise.future().Await();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wins, 1);
    EXPECT_EQ(calls, 2);
  }
}

}  // namespace
}  // namespace baton
