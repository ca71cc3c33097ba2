// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage.h"

#include <gtest/gtest.h>

#include "models/nn/dropout.h"
#include "models/nn/sequential.h"

namespace baton::dist {
namespace {

TEST(Stage, ForwardsThatDrawRandomNumbersAreNotRecomputed) {
  nn::Sequential inner;
  EXPECT_TRUE(CheckRecomputable(inner).ok());
  inner.Add(std::make_shared<nn::Dropout>(0.5, 1));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRecomputable(inner)));
}

}  // namespace
}  // namespace baton::dist
