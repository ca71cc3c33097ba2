// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "rpc/transports/credentials.h"

namespace baton::rpc {
namespace {

TEST(PlainReason, LeavesOutWhatTheReaderKnows) {
  const std::string before = "failed to connect to all addresses; last error: ";
  EXPECT_EQ(PlainReason(before + "UNKNOWN: ipv4:127.0.0.1:2913: Failed to "
                                 "connect to remote host: Connection refused"),
            "Connection refused");
  EXPECT_EQ(
      PlainReason(before + "UNAVAILABLE: ipv6:%5B::1%5D:29: Socket closed"),
      "Socket closed");
  EXPECT_EQ(PlainReason(before + "UNKNOWN: unix:/tmp/x/s: No such file"),
            "No such file");
}

TEST(PlainReason, KeepsWhatItDoesNotKnow) {
  for (const std::string text : {"it does not answer", "a: b: c", ""}) {
    EXPECT_EQ(PlainReason(text), text);
  }
  EXPECT_EQ(PlainReason("last error: nothing"), "nothing");
}

}  // namespace
}  // namespace baton::rpc
