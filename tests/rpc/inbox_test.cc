// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/inbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/future.h"

namespace baton::rpc::internal {
namespace {

TEST(Inbox, RunsHereWhatNothingIsBefore) {
  Inbox inbox("test");
  std::thread::id ran_on;
  inbox.Run([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Inbox, RunsWhatIsPostedOnItsThread) {
  Inbox inbox("test");
  Promise<bool> here;
  inbox.Post([here, id = std::this_thread::get_id()] {
    here.Set(std::this_thread::get_id() == id);
  });
  EXPECT_FALSE(*here.future().Await());
}

TEST(Inbox, RunWaitsForNobody) {
  Inbox inbox("test");
  Promise<void> begun, go;
  inbox.Post([begun, go] {
    begun.Set(absl::OkStatus());
    go.future().Await().IgnoreError();
  });
  ASSERT_TRUE(begun.future().Await().ok());
  Promise<void> second;
  inbox.Run([second] { second.Set(absl::OkStatus()); });
  EXPECT_FALSE(second.future().ready());
  go.Set(absl::OkStatus());
  EXPECT_TRUE(second.future().Await().ok());
}

TEST(Inbox, ATaskMayBringOthersWhichRunAfterIt) {
  Inbox inbox("test");
  std::vector<int> order;
  Promise<void> done;
  inbox.Run([&] {
    for (int i = 0; i < 100; ++i) {
      const auto note = [&order, i] { order.push_back(i); };
      if (i % 2 == 0) {
        inbox.Run(note);
      } else {
        inbox.Post(note);
      }
    }
    inbox.Post([done] { done.Set(absl::OkStatus()); });
    EXPECT_TRUE(order.empty());
  });
  ASSERT_TRUE(done.future().Await().ok());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Inbox, OneAtATimeAndInTheOrderOfEachThread) {
  Inbox inbox("test");
  constexpr int kThreads = 4, kTasks = 5000;
  std::atomic<int> inside{0};
  std::vector<std::vector<int>> seen(kThreads);
  std::atomic<int> count{0};
  Promise<void> done;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        Task task = [&, t, i] {
          EXPECT_EQ(inside++, 0);
          seen[static_cast<size_t>(t)].push_back(i);
          --inside;
          if (++count == kThreads * kTasks) done.Set(absl::OkStatus());
        };
        if (t % 2 == 0) {
          inbox.Run(std::move(task));
        } else {
          inbox.Post(std::move(task));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(done.future().Await().ok());
  for (const auto& tasks : seen) {
    ASSERT_EQ(tasks.size(), static_cast<size_t>(kTasks));
    for (int i = 0; i < kTasks; ++i) {
      ASSERT_EQ(tasks[static_cast<size_t>(i)], i);
    }
  }
}

TEST(Inbox, StopRunsWhatIsQueued) {
  Inbox inbox("test");
  int ran = 0;
  for (int i = 0; i < 100; ++i) inbox.Post([&ran] { ++ran; });
  inbox.Stop();
  EXPECT_EQ(ran, 100);
  inbox.Post([&ran] { ++ran; });
  EXPECT_EQ(ran, 101);
}

}  // namespace
}  // namespace baton::rpc::internal
