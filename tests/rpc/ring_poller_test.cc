// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/transports/rings.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using baton::testing::IsOk;

constexpr std::chrono::seconds kPollPatience{30};

// Counts what it is given, and what of it was served.
class CountingSource final : public RingSource {
 public:
  explicit CountingSource(std::function<void()> on_serve = nullptr)
      : on_serve_(std::move(on_serve)) {}

  bool Ready() override { return served_ < given_; }
  void Serve() override {
    EXPECT_FALSE(serving_.exchange(true));  // one thread at a time
    if (on_serve_) on_serve_();
    serving_ = false;
    MutexLock lock(mutex_);
    ++served_;
    changed_.NotifyAll();
  }
  void Give(FutexEvent& waker) {
    ++given_;
    waker.Wake();
  }
  bool AwaitServed(int count) {
    const auto deadline = std::chrono::steady_clock::now() + kPollPatience;
    MutexLock lock(mutex_);
    while (served_ < count && changed_.WaitUntil(mutex_, deadline)) {
    }
    return served_ >= count;
  }

 private:
  const std::function<void()> on_serve_;
  std::atomic<int> given_{0}, served_{0};
  std::atomic<bool> serving_{false};
  Mutex mutex_;
  CondVar changed_;
};

struct Process {
  std::shared_ptr<FutexEvent> event = *FutexEvent::Make();
  std::shared_ptr<FutexEvent> waker =
      *FutexEvent::Open(Fd(dup(event->fd().get())));
  std::shared_ptr<RingPoller> poller = RingPoller::Make(event);
};

bool AwaitSleep(const Process& process) {
  const auto deadline = std::chrono::steady_clock::now() + kPollPatience;
  while (!FutexEvent::Asleep(process.event->value())) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Spins for up to 200 ms while that pays. Exits with 0 if a poller that was
// given much at once, and then little now and then, sleeps as soon as it has
// served.
[[noreturn]] void ExitByHowSoonItSleeps() {
  setenv("BATON_SPIN", "200ms", 1);
  Process process;
  const auto source = std::make_shared<CountingSource>();
  process.poller->Add(source);
  int given = 0;
  const auto give = [&] {
    source->Give(*process.waker);
    return source->AwaitServed(++given);
  };
  bool served = true;
  for (int i = 0; i < 20; ++i) served = give() && served;
  for (int i = 0; i < 3; ++i) {
    served = AwaitSleep(process) && served;
    std::this_thread::sleep_for(std::chrono::milliseconds(220));
    served = give() && served;
  }
  const auto begin = std::chrono::steady_clock::now();
  served = AwaitSleep(process) && served;
  const auto took = std::chrono::steady_clock::now() - begin;
  std::_Exit(served && took < std::chrono::milliseconds(100) ? 0 : 1);
}

TEST(RingPollerDeathTest, RareWorkIsAwaitedAsleep) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ExitByHowSoonItSleeps(), ::testing::ExitedWithCode(0), "");
}

TEST(RingPoller, ServesWhatIsGivenWhetherItSleepsOrLooksOn) {
  Process process;
  const auto source = std::make_shared<CountingSource>();
  process.poller->Add(source);
  for (int i = 1; i <= 3000; ++i) {
    source->Give(*process.waker);
    // Runs of gifts that come at once, and pauses in which it falls asleep.
    if (i % 100 < 50) continue;
    ASSERT_TRUE(source->AwaitServed(i)) << i;
    if (i % 500 == 0) {
      while (!FutexEvent::Asleep(process.event->value())) {
        std::this_thread::yield();
      }
    }
  }
  EXPECT_TRUE(source->AwaitServed(3000));
}

TEST(RingPoller, ServesManyThatManyGiveTo) {
  Process process;
  std::vector<std::shared_ptr<CountingSource>> sources;
  for (int i = 0; i < 20; ++i) {
    sources.push_back(std::make_shared<CountingSource>());
    process.poller->Add(sources.back());
  }
  std::vector<std::thread> givers;
  for (int t = 0; t < 4; ++t) {
    givers.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        sources[static_cast<size_t>((i + t) % 20)]->Give(*process.waker);
      }
    });
  }
  for (std::thread& giver : givers) giver.join();
  for (const auto& source : sources) EXPECT_TRUE(source->AwaitServed(400));
}

TEST(RingPoller, DoesATaskItselfAndStillServesWhileThatWaits) {
  const auto pool = std::make_shared<ThreadPool>(4, "pool");
  Process process;
  const Promise<void> go_on, entered, done;
  std::atomic<int> tasks{0};
  const auto source = std::make_shared<CountingSource>([&] {
    if (tasks++ > 0) return;
    pool->PostOrRunInline([&] {
      entered.Set(absl::OkStatus());
      EXPECT_THAT(go_on.future().Await(), IsOk());
      done.Set(absl::OkStatus());
    });
  });
  process.poller->Add(source);
  source->Give(*process.waker);
  ASSERT_THAT(entered.future().Await(), IsOk());
  for (int i = 2; i <= 200; ++i) {
    source->Give(*process.waker);
    ASSERT_TRUE(source->AwaitServed(i)) << i;
  }
  go_on.Set(absl::OkStatus());
  EXPECT_THAT(done.future().Await(), IsOk());
}

TEST(RingPoller, TasksRunOnceWhoeverDoesThem) {
  constexpr int kCount = 5000;
  std::atomic<int> ran{0};
  {
    const auto pool = std::make_shared<ThreadPool>(2, "pool");
    Process process;
    const auto source = std::make_shared<CountingSource>(
        [&] { pool->PostOrRunInline([&] { ++ran; }); });
    process.poller->Add(source);
    for (int i = 1; i <= kCount; ++i) {
      source->Give(*process.waker);
      if (i % 7 == 0) source->AwaitServed(i);
    }
    ASSERT_TRUE(source->AwaitServed(kCount));
    process.poller->Stop();
  }
  EXPECT_EQ(ran, kCount);
}

TEST(RingPoller, StopsWhileATaskWaits) {
  const auto pool = std::make_shared<ThreadPool>(1, "pool");
  const Promise<void> go_on, entered;
  std::atomic<bool> done{false};
  {
    Process process;
    const auto source = std::make_shared<CountingSource>([&] {
      pool->PostOrRunInline([&] {
        entered.Set(absl::OkStatus());
        EXPECT_THAT(go_on.future().Await(), IsOk());
        done = true;
      });
    });
    process.poller->Add(source);
    source->Give(*process.waker);
    ASSERT_THAT(entered.future().Await(), IsOk());
    process.poller->Stop();
    EXPECT_FALSE(done);
  }
  go_on.Set(absl::OkStatus());
  const auto deadline = std::chrono::steady_clock::now() + kPollPatience;
  while (!done && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(done);
}

TEST(RingPoller, ServesNothingThatWasRemovedAndLetsGoOfIt) {
  Process process;
  auto source = std::make_shared<CountingSource>();
  process.poller->Add(source);
  source->Give(*process.waker);
  ASSERT_TRUE(source->AwaitServed(1));
  process.poller->Remove(source.get());
  const std::weak_ptr<CountingSource> weak = source;
  source.reset();
  const auto deadline = std::chrono::steady_clock::now() + kPollPatience;
  while (!weak.expired() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(weak.expired());
}

// A process that may write the word says that somebody is awake where all
// sleep: what it gives then is not noticed before the next check.
TEST(RingPoller, NoticesLaterWhereSomebodySpoiltTheDoorbell) {
  Process process;
  auto* word = static_cast<std::atomic<uint32_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
           process.event->fd().get(), 0));
  const auto source = std::make_shared<CountingSource>();
  process.poller->Add(source);
  source->Give(*process.waker);
  ASSERT_TRUE(source->AwaitServed(1));
  while (!FutexEvent::Asleep(process.event->value())) {
    std::this_thread::yield();
  }
  word->store(100);
  source->Give(*process.waker);
  process.poller->Check(*source);
  EXPECT_TRUE(source->AwaitServed(2));
  munmap(word, 4096);
}

}  // namespace
}  // namespace baton::rpc
