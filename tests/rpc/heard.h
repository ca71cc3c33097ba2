// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "rpc/rref.h"
#include "tests/rpc/counter.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::testing {

// What a handler of RRef::OnOwnerLost was told. The handler owns it too, so it
// shows when it cannot be called any more.
struct Heard {
  std::atomic<int> times{0};
  Promise<void> cause;
};
using HeardPtr = std::shared_ptr<Heard>;

inline HeardPtr Listen(const RRef<Counter>& counter) {
  auto heard = std::make_shared<Heard>();
  counter.OnOwnerLost([heard](const RRef<Counter>&, const absl::Status& cause) {
    if (++heard->times == 1) heard->cause.Set(cause);
  });
  return heard;
}

inline bool NobodyWillCall(const HeardPtr& heard) {
  return Within(std::chrono::seconds(10),
                [&] { return heard.use_count() == 1; });
}

inline void ExpectOnce(const HeardPtr& heard, const std::string& cause) {
  EXPECT_THAT(heard->cause.future().Await(std::chrono::seconds(10)),
              Fails(absl::StatusCode::kUnavailable, cause));
  EXPECT_TRUE(NobodyWillCall(heard));
  EXPECT_EQ(heard->times, 1);
}

}  // namespace baton::testing
