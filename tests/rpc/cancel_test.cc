// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rpc/call_context.h"

namespace baton::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const absl::Status kTooLate = absl::DeadlineExceededError("too late");

class CancelTest : public ::testing::Test {
 protected:
  // Notes a number and why.
  CancelToken::Callback Note(int number) {
    return [this, number](const absl::Status& why) {
      noted_.push_back(number);
      EXPECT_EQ(why, kTooLate);
    };
  }

  const CancelSource source_;
  const CancelToken token_ = source_.token();
  std::vector<int> noted_;
};

TEST_F(CancelTest, ATokenWithoutASourceIsNeverCancelled) {
  const CancelToken none;
  EXPECT_FALSE(none.cancelled());
  EXPECT_EQ(none.reason(), absl::OkStatus());
  const auto held = std::make_shared<int>(1);
  none.Remove(none.OnCancel([this, held](const auto& why) { Note(1)(why); }));
  EXPECT_EQ(held.use_count(), 1) << "it keeps what can never be told";
  EXPECT_THAT(noted_, IsEmpty());
}

TEST_F(CancelTest, EveryTokenKnowsWhy) {
  const CancelToken copy = token_;
  EXPECT_FALSE(copy.cancelled());
  EXPECT_EQ(copy.reason(), absl::OkStatus());
  source_.Cancel(kTooLate);
  for (const CancelToken& token : {token_, copy, source_.token()}) {
    EXPECT_TRUE(token.cancelled());
    EXPECT_EQ(token.reason(), kTooLate);
  }
}

TEST_F(CancelTest, WhoNamesNoReasonGivesCancelled) {
  source_.Cancel();
  EXPECT_TRUE(absl::IsCancelled(token_.reason())) << token_.reason();
}

TEST_F(CancelTest, TellsEveryListenerOnce) {
  token_.OnCancel(Note(1));
  source_.token().OnCancel(Note(2));
  EXPECT_THAT(noted_, IsEmpty());
  source_.Cancel(kTooLate);
  EXPECT_THAT(noted_, UnorderedElementsAre(1, 2));
}

TEST_F(CancelTest, TheFirstReasonWins) {
  const CancelSource same = source_;
  token_.OnCancel(Note(1));
  same.Cancel(kTooLate);
  source_.Cancel(absl::AbortedError("again"));
  EXPECT_EQ(token_.reason(), kTooLate);
  EXPECT_THAT(noted_, ElementsAre(1));
}

TEST_F(CancelTest, WhoListensLateIsToldAtOnce) {
  token_.OnCancel(Note(1));
  source_.Cancel(kTooLate);
  token_.Remove(token_.OnCancel(Note(2)));
  EXPECT_THAT(noted_, ElementsAre(1, 2));
  source_.Cancel(kTooLate);
  EXPECT_THAT(noted_, ElementsAre(1, 2));
}

TEST_F(CancelTest, ListenersRunOnTheThreadThatCancels) {
  std::thread::id where;
  token_.OnCancel([&](const auto&) { where = std::this_thread::get_id(); });
  std::thread cancels([&] {
    source_.Cancel(kTooLate);
    EXPECT_EQ(where, std::this_thread::get_id());
  });
  cancels.join();
}

TEST_F(CancelTest, WhoWasTakenBackIsNotTold) {
  const auto held = std::make_shared<int>(1);
  const uint64_t number =
      token_.OnCancel([this, held](const auto& why) { Note(1)(why); });
  token_.OnCancel(Note(2));
  token_.Remove(number);
  EXPECT_EQ(held.use_count(), 1);
  token_.Remove(number);
  token_.Remove(number + 100);
  token_.Remove(0);
  source_.Cancel(kTooLate);
  EXPECT_THAT(noted_, ElementsAre(2));
}

TEST_F(CancelTest, AListenerMayUseWhatItListensTo) {
  const uint64_t other = token_.OnCancel([](const auto&) {});
  token_.OnCancel([&](const absl::Status& why) {
    EXPECT_EQ(token_.reason(), why);
    source_.Cancel(absl::AbortedError("again"));
    token_.Remove(other);
    token_.OnCancel([&](const absl::Status& late) {
      EXPECT_EQ(token_.reason(), late);
      Note(1)(late);
    });
  });
  source_.Cancel(kTooLate);
  EXPECT_THAT(noted_, ElementsAre(1));
}

// Asks the token when it is destroyed, as the owner of another listener may.
class Asks {
 public:
  explicit Asks(CancelToken token) : token_(std::move(token)) {}
  ~Asks() { (void)token_.cancelled(); }

 private:
  const CancelToken token_;
};

TEST_F(CancelTest, WhatAListenerHeldMayUseTheToken) {
  const auto listener = [&] {
    return [held = std::make_shared<Asks>(token_)](const auto&) {};
  };
  token_.Remove(token_.OnCancel(listener()));
  token_.OnCancel(listener());
  source_.Cancel(kTooLate);
}

TEST_F(CancelTest, ListenersAreLetGoOnceToldAndWithTheLastToken) {
  const auto held = std::make_shared<int>(1);
  const auto listener = [held](const auto&) {};
  token_.OnCancel(listener);
  source_.Cancel(kTooLate);
  EXPECT_EQ(held.use_count(), 2) << "the one here and its listener's";
  {
    const CancelSource other;
    other.token().OnCancel(listener);
    EXPECT_EQ(held.use_count(), 3);
  }
  EXPECT_EQ(held.use_count(), 2);
}

TEST_F(CancelTest, ATokenOutlivesItsSource) {
  auto source = std::make_unique<CancelSource>();
  const CancelToken open = source->token();
  open.OnCancel(Note(1));
  source = nullptr;
  EXPECT_FALSE(open.cancelled());
  EXPECT_THAT(noted_, IsEmpty());
}

TEST(CancelRace, EveryListenerIsToldOnceUnlessItWasTakenBack) {
  constexpr size_t kListeners = 100;
  for (int round = 0; round < 50; ++round) {
    const CancelSource source;
    std::vector<std::atomic<int>> told(kListeners);
    std::vector<std::thread> threads;
    for (size_t first : {0, 1}) {
      threads.emplace_back([&, first] {
        for (size_t i = first; i < kListeners; i += 2) {
          const uint64_t number =
              source.token().OnCancel([&, i](const auto&) { ++told[i]; });
          if (i % 4 == 0) source.token().Remove(number);
        }
      });
      threads.emplace_back([&] { source.Cancel(kTooLate); });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < kListeners; ++i) {
      if (i % 4 == 0) {
        EXPECT_LE(told[i], 1) << i;
      } else {
        EXPECT_EQ(told[i], 1) << i;
      }
    }
  }
}

}  // namespace
}  // namespace baton::rpc
