// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/future.h"
#include "tests/support/within.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Within;

constexpr std::chrono::seconds kPatience{10};
// How long something that must not come is waited for.
constexpr milliseconds kAWhile{20};

// Sets a promise when it is destroyed.
class Tells {
 public:
  explicit Tells(Promise<void> gone) : gone_(std::move(gone)) {}
  ~Tells() { gone_.Set(absl::OkStatus()); }

 private:
  const Promise<void> gone_;
};

class TimerTest : public ::testing::Test {
 protected:
  // Nothing runs from when this returns until Release.
  void Hold() {
    const Promise<void> held;
    holding_ =
        timer_.After(milliseconds(0), [held, released = released_.future()] {
          held.Set(absl::OkStatus());
          EXPECT_EQ(released.Await(kPatience), absl::OkStatus());
        });
    ASSERT_EQ(held.future().Await(kPatience), absl::OkStatus());
  }
  void Release() { released_.Set(absl::OkStatus()); }
  // Has run all whose time had come before this was called.
  void AwaitDue() {
    const Promise<void> due;
    timer_.After(milliseconds(0), [due] { due.Set(absl::OkStatus()); });
    ASSERT_EQ(due.future().Await(kPatience), absl::OkStatus());
  }
  Task Note(int number) {
    return [this, number] { noted_.push_back(number); };
  }

  const Timer::Clock::time_point now_ = Timer::Clock::now();
  const Promise<void> released_;
  std::vector<int> noted_;  // the timer's thread's, until AwaitDue
  Timer timer_{"timer-of-a-test"};
  Timer::Id holding_ = 0;
};

TEST_F(TimerTest, RunsTasksInTheOrderOfTheirTimes) {
  std::vector<int> numbers(10'000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i);
  std::vector<int> shuffled = numbers;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(7));
  Hold();
  for (const int i : shuffled)
    timer_.At(now_ - std::chrono::hours(1) + milliseconds(i), Note(i));
  Release();
  AwaitDue();
  EXPECT_EQ(noted_, numbers);
}

TEST_F(TimerTest, RunsTasksOfOneTimeInTheOrderInWhichTheyCame) {
  Hold();
  for (int i = 0; i < 5; ++i) timer_.At(now_, Note(i));
  Release();
  AwaitDue();
  EXPECT_THAT(noted_, ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(TimerTest, RunsNothingBeforeItsTime) {
  for (const int delay : {15, 1, 5, 10}) {
    const auto when = now_ + milliseconds(delay);
    timer_.At(when, [this, when, delay] {
      EXPECT_GE(Timer::Clock::now(), when);
      noted_.push_back(delay);
    });
  }
  const Promise<void> last;
  timer_.At(now_ + milliseconds(16), [last] { last.Set(absl::OkStatus()); });
  ASSERT_EQ(last.future().Await(kPatience), absl::OkStatus());
  EXPECT_THAT(noted_, ElementsAre(1, 5, 10, 15));
}

TEST_F(TimerTest, RunsAtOnceWhatWasDueBefore) {
  timer_.At(Timer::Clock::time_point::min(), Note(1));
  timer_.After(milliseconds::min(), Note(2));
  timer_.After(milliseconds(-5), Note(3));
  timer_.After(milliseconds(0), Note(4));
  AwaitDue();
  EXPECT_THAT(noted_, ::testing::UnorderedElementsAre(1, 2, 3, 4));
}

TEST_F(TimerTest, NeverRunsWhatIsDueLaterThanTheClockCanTell) {
  const Timer::Id never[] = {
      timer_.At(Timer::Clock::time_point::max(), Note(1)),
      timer_.After(kNoLimit, Note(2)),
      timer_.After(kNoLimit - milliseconds(1), Note(3)),
      timer_.After(std::chrono::hours(24 * 365 * 1000), Note(4))};
  AwaitDue();
  EXPECT_THAT(noted_, IsEmpty());
  for (const Timer::Id id : never) EXPECT_TRUE(timer_.Cancel(id));
}

TEST_F(TimerTest, WaitsForTheFirstWhateverItWaitedForBefore) {
  for (int i = 0; i < 100; ++i) {
    // From its own thread, which goes to sleep for a minute right after.
    timer_.After(milliseconds(0),
                 [&] { timer_.After(std::chrono::minutes(1), Note(1)); });
    for (int k = 0; k < 2; ++k) ASSERT_NO_FATAL_FAILURE(AwaitDue());
  }
  EXPECT_THAT(noted_, IsEmpty());
}

TEST_F(TimerTest, RunsAllOnOneThreadOfItsOwn) {
  std::set<pid_t> threads;
  std::string name;
  for (int i = 0; i < 10; ++i) {
    timer_.After(milliseconds(i % 3), [&] {
      threads.insert(gettid());
      char text[16] = {};
      pthread_getname_np(pthread_self(), text, sizeof(text));
      name = text;
    });
  }
  const Promise<void> last;
  timer_.After(milliseconds(3), [last] { last.Set(absl::OkStatus()); });
  ASSERT_EQ(last.future().Await(kPatience), absl::OkStatus());
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_FALSE(threads.contains(gettid()));
  EXPECT_EQ(name, "timer-of-a-test");
}

TEST_F(TimerTest, DoesNotRunWhatWasCancelledInTime) {
  Hold();
  const Timer::Id cancelled = timer_.After(milliseconds(0), Note(1));
  timer_.After(milliseconds(0), Note(2));
  EXPECT_TRUE(timer_.Cancel(cancelled));
  EXPECT_FALSE(timer_.Cancel(cancelled)) << "it was taken back already";
  Release();
  AwaitDue();
  EXPECT_THAT(noted_, ElementsAre(2));
}

TEST_F(TimerTest, CannotCancelWhatHasBegunAndDoesNotWaitForIt) {
  Hold();
  EXPECT_FALSE(timer_.Cancel(holding_)) << "it runs";
  Release();
  AwaitDue();
  EXPECT_FALSE(timer_.Cancel(holding_)) << "it is done";
}

TEST_F(TimerTest, CancelsNothingByNumbersThatItNeverGave) {
  Hold();
  const Timer::Id first = timer_.After(milliseconds(0), Note(1));
  const Timer::Id second = timer_.After(milliseconds(0), Note(2));
  EXPECT_NE(first, 0u);
  EXPECT_NE(first, second);
  EXPECT_FALSE(timer_.Cancel(0));
  EXPECT_FALSE(timer_.Cancel(second + 1));
  Release();
  AwaitDue();
  EXPECT_THAT(noted_, ElementsAre(1, 2));
}

TEST_F(TimerTest, LetsATaskAddAndCancelOthersAndItself) {
  Hold();
  Timer::Id own = 0, other = 0;
  own = timer_.At(now_, [&] {
    EXPECT_FALSE(timer_.Cancel(own));
    EXPECT_TRUE(timer_.Cancel(other));
    timer_.At(now_ - milliseconds(1), Note(1));
  });
  other = timer_.At(now_, Note(2));
  timer_.At(now_, Note(3));
  Release();
  AwaitDue();
  EXPECT_THAT(noted_, ElementsAre(1, 3));
}

TEST_F(TimerTest, LetsGoOfWhatATaskHoldsOnceItRanOrWasCancelled) {
  const Promise<void> gone_by_run, gone_by_cancel;
  timer_.After(milliseconds(0),
               [held = std::make_shared<Tells>(gone_by_run)] {});
  EXPECT_EQ(gone_by_run.future().Await(kPatience), absl::OkStatus());
  timer_.Cancel(timer_.After(
      kNoLimit, [held = std::make_shared<Tells>(gone_by_cancel)] {}));
  EXPECT_TRUE(gone_by_cancel.future().ready());
}

// Uses the timer when it is destroyed, as the owner of another task may.
class UsesTimer {
 public:
  explicit UsesTimer(Timer& timer) : timer_(timer) {}
  ~UsesTimer() {
    timer_.Cancel(timer_.After(kNoLimit, [] {}));
  }

 private:
  Timer& timer_;
};

TEST_F(TimerTest, MayBeUsedByWhatATaskHeld) {
  const auto uses = [&] {
    return [held = std::make_unique<UsesTimer>(timer_)] {};
  };
  timer_.After(milliseconds(0), uses());
  AwaitDue();
  timer_.Cancel(timer_.After(kNoLimit, uses()));
  timer_.After(kNoLimit, uses());
  timer_.Stop();
  timer_.After(kNoLimit, uses());
}

TEST_F(TimerTest, EachTaskOfManyThreadsRunsOrIsCancelled) {
  constexpr int kThreads = 4, kTasks = 1000;
  std::vector<std::atomic<int>> runs(kThreads * kTasks);
  std::vector<std::atomic<bool>> cancelled(kThreads * kTasks);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t * kTasks; i < (t + 1) * kTasks; ++i) {
        const Timer::Id id = timer_.After(std::chrono::milliseconds(i % 3),
                                          [&runs, i] { ++runs[i]; });
        if (i % 2 == 0) cancelled[i] = timer_.Cancel(id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Promise<void> last;
  timer_.After(milliseconds(3), [last] { last.Set(absl::OkStatus()); });
  ASSERT_EQ(last.future().Await(kPatience), absl::OkStatus());
  for (size_t i = 0; i < runs.size(); ++i)
    ASSERT_EQ(runs[i], cancelled[i] ? 0 : 1) << i;
}

TEST_F(TimerTest, StopDropsWhatHasNotRunAndWhatComesLater) {
  Hold();
  const Promise<void> gone_before, gone_after;
  const auto note = [&](const Promise<void>& gone) {
    return
        [this, held = std::make_shared<Tells>(gone)] { noted_.push_back(1); };
  };
  const Timer::Id dropped = timer_.After(milliseconds(0), note(gone_before));
  std::thread stops([&] { timer_.Stop(); });
  EXPECT_TRUE(Within(kPatience, [&] {
    return !timer_.Cancel(timer_.After(kNoLimit, [] {}));
  })) << "it still takes what comes";
  EXPECT_FALSE(timer_.Cancel(dropped));
  timer_.After(milliseconds(0), note(gone_after));
  EXPECT_TRUE(gone_after.future().ready());
  Release();
  stops.join();
  EXPECT_TRUE(gone_before.future().ready());
  EXPECT_THAT(noted_, IsEmpty());
  timer_.Stop();  // again, for nothing
}

TEST_F(TimerTest, StopWaitsForTheTaskThatRuns) {
  const Promise<void> began, stopped;
  absl::Status seen;
  timer_.After(milliseconds(0), [&, future = stopped.future()] {
    began.Set(absl::OkStatus());
    seen = future.Await(kAWhile);
  });
  ASSERT_EQ(began.future().Await(kPatience), absl::OkStatus());
  timer_.Stop();
  stopped.Set(absl::OkStatus());
  EXPECT_TRUE(absl::IsDeadlineExceeded(seen)) << seen;
}

TEST(Timer, MayEndWithTasksOfAnyTime) {
  std::atomic<int> early{0};
  const Promise<void> gone;
  for (int i = 0; i < 50; ++i) {
    Timer timer("ends");
    timer.After(std::chrono::minutes(1), [&] { ++early; });
    timer.After(milliseconds(0), [] {});
    if (i == 49)
      timer.After(kNoLimit, [held = std::make_shared<Tells>(gone)] {});
  }
  EXPECT_EQ(early, 0);
  EXPECT_TRUE(gone.future().ready());
}

}  // namespace
}  // namespace baton
