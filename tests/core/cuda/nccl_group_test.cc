// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/nccl_group.h"

#include <gtest/gtest.h>

namespace baton::cuda {
namespace {

TEST(Nccl, WhatIsMissingIsSaid) {
  const auto version = NcclVersion();
  if (version.ok()) {
    EXPECT_EQ(version->substr(0, 2), "2.");
  } else {
    EXPECT_EQ(version.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(version.status().message(), "");
  }
  EXPECT_EQ(NcclVersion().status(), version.status()) << "opened once";
}

TEST(Nccl, AnIdOfAnotherSizeIsRefused) {
  for (const char* id : {"", "short"})
    EXPECT_FALSE(JoinNcclGroup(id, 0, 2, 0).Await().ok());
}

}  // namespace
}  // namespace baton::cuda
