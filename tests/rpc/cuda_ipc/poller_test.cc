// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/poller.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "core/future.h"

namespace baton::rpc {
namespace {

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

}  // namespace
}  // namespace baton::rpc
