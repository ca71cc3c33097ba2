// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/signal_echo.h"

#include <csignal>

#include "gtest/gtest.h"

namespace baton::tools {
namespace {

TEST(SignalEcho, IsTheSameSignalSoonAfterTheFirst) {
  const auto now = SignalEcho::Clock::now();
  const auto tick = std::chrono::milliseconds(1);
  SignalEcho echo;
  EXPECT_FALSE(echo.IsEcho(SIGTERM, now));
  EXPECT_TRUE(echo.IsEcho(SIGTERM, now));
  EXPECT_TRUE(echo.IsEcho(SIGTERM, now + SignalEcho::kWithin - tick));
  EXPECT_FALSE(echo.IsEcho(SIGTERM, now + SignalEcho::kWithin));
}

TEST(SignalEcho, AnotherSignalIsMeant) {
  const auto now = SignalEcho::Clock::now();
  SignalEcho echo;
  EXPECT_FALSE(echo.IsEcho(SIGTERM, now));
  EXPECT_FALSE(echo.IsEcho(SIGINT, now));
}

}  // namespace
}  // namespace baton::tools
