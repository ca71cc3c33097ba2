// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/distributed/pipeline.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"

namespace baton::dist {

// For workers of this process: it has no windows of its own GPUs.
inline Windows WindowsHere() {
  return test::TestDevice().is_cuda() ? Windows::kAuto : Windows::kRequired;
}

// After a training step; the first of its kind goes by mail.
inline void ExpectWindowsFromTheSecondStepOn(Pipeline& pipeline, int step) {
  const auto links = pipeline.Links();
  ASSERT_THAT(links, testing::IsOk());
  for (const PipelineLink& link : *links) {
    const bool window = step > 0 && WindowsHere() == Windows::kRequired &&
                        link.path != kLocalPath;
    EXPECT_EQ(link.path == kWindowPath, window)
        << link.from << " to " << link.to << ": " << link.path
        << link.why_no_window;
  }
}

}  // namespace baton::dist
