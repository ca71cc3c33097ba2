// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/poller.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "core/future.h"

namespace baton::rpc {
namespace {

using std::chrono_literals::operator""ms;
using Clock = std::chrono::steady_clock;
using TimesPtr = std::shared_ptr<AnswerTimes>;

constexpr std::chrono::seconds kLimit{30};

TEST(Poller, AsksUntilTheAnswerIsYes) {
  Poller poller("test-poll");
  Promise<int> asked;
  poller.Add([asked, count = 0]() mutable {
    if (++count < 1000) return false;
    asked.Set(count);
    return true;
  });
  EXPECT_EQ(*asked.future().Await(kLimit), 1000);
}

TEST(Poller, AnsweredQuestionsDoNotWaitForOthers) {
  Poller poller("test-poll");
  poller.Add([] { return false; });
  for (int i = 0; i < 20; ++i) {
    Promise<int> asked;
    poller.Add([asked, i] {
      asked.Set(i);
      return true;
    });
    EXPECT_EQ(*asked.future().Await(kLimit), i);
  }
}

TEST(Poller, MayBeDroppedByAQuestionAndDropsTheOthers) {
  const auto held = std::make_shared<int>(0);
  auto poller = std::make_shared<Poller>("test-poll");
  poller->Add([held] { return false; });
  Promise<int> last;
  poller->Add([last, poller]() mutable {
    poller = nullptr;
    last.Set(1);
    return true;
  });
  poller = nullptr;
  EXPECT_EQ(*last.future().Await(kLimit), 1);
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  while (held.use_count() > 1 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(held.use_count(), 1);
}

// When, after it was added, a query that is true at `end` was asked first.
Clock::duration FirstAsked(Poller& poller, const TimesPtr& times,
                           Clock::duration end) {
  const Promise<Clock::duration> first;
  poller.Add(
      [first, end, added = Clock::now(), asked = false]() mutable {
        const auto since = Clock::now() - added;
        if (!std::exchange(asked, true)) first.Set(since);
        return since >= end;
      },
      times);
  return *first.future().Await(kLimit);
}

TEST(Poller, LeavesAKindAloneThatTakesLong) {
  Poller poller("test-poll");
  const auto times = std::make_shared<AnswerTimes>();
  for (int i = 0; i < 8; ++i) FirstAsked(poller, times, 20ms);
  Promise<void> ended;  // the poller's thread has seen all of them
  poller.Add([&] {
    if (times->Least() < 20ms) return false;
    ended.Set(absl::OkStatus());
    return true;
  });
  ASSERT_TRUE(ended.future().Await(kLimit).ok());
  EXPECT_GE(FirstAsked(poller, times, 20ms), 15ms);
  // Others are not.
  EXPECT_LT(FirstAsked(poller, nullptr, 0ms), kLimit);
}

TEST(AnswerTimes, AreTheLatestEight) {
  AnswerTimes times;
  for (int i = 0; i < 7; ++i) times.Add(5ms);
  EXPECT_EQ(times.Least(), 0ms);
  times.Add(7ms);
  EXPECT_EQ(times.Least(), 5ms);
  for (int i = 0; i < 7; ++i) times.Add(9ms);
  EXPECT_EQ(times.Least(), 7ms);
  times.Add(9ms);
  EXPECT_EQ(times.Least(), 9ms);
}

}  // namespace
}  // namespace baton::rpc
