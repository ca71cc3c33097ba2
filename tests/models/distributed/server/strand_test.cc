// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/strand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/future.h"

namespace baton::dist {
namespace {

using ::testing::ElementsAre;

constexpr std::chrono::seconds kLimit{30};

TEST(Strand, RunsTasksInOrderOnItsOwnThread) {
  Strand strand("test-strand");
  std::vector<int> order;  // only tasks use it
  std::vector<std::thread::id> threads;
  const Promise<void> done;
  const auto note = [&](int i) {
    order.push_back(i);
    threads.push_back(std::this_thread::get_id());
  };
  strand.Run([&] {
    strand.Run([&] {
      note(2);
      done.Set(absl::OkStatus());
    });
    note(1);
  });
  ASSERT_TRUE(done.future().Await(kLimit).ok());
  EXPECT_THAT(order, ElementsAre(1, 2));
  for (const auto& thread : threads) {
    EXPECT_EQ(thread, threads.front());
    EXPECT_NE(thread, std::this_thread::get_id());
  }
}

TEST(Strand, RunsNoOtherTaskWhileOneWaits) {
  Strand strand("test-strand");
  const Promise<void> go, done;
  std::vector<int> order;
  strand.Run([&] {
    go.future().Await(kLimit).IgnoreError();
    order.push_back(1);
  });
  strand.Run([&] {
    order.push_back(2);
    done.Set(absl::OkStatus());
  });
  go.Set(absl::OkStatus());
  ASSERT_TRUE(done.future().Await(kLimit).ok());
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(Strand, MayBeDroppedByATask) {
  auto strand = std::make_shared<Strand>("test-strand");
  const Promise<void> both, last;
  strand->Run([both, strand]() mutable {
    both.future().Await(kLimit).IgnoreError();
    strand = nullptr;
  });
  strand->Run([last] { last.Set(absl::OkStatus()); });
  strand = nullptr;
  both.Set(absl::OkStatus());
  EXPECT_TRUE(last.future().Await(kLimit).ok());
}

}  // namespace
}  // namespace baton::dist
