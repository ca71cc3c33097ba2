// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/precision.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Precision, IsExactAndFreeUntilToldOtherwise) {
  EXPECT_FALSE(Tf32Allowed());
  EXPECT_FALSE(Deterministic());
  AllowTf32(true);
  EXPECT_TRUE(Tf32Allowed());
  EXPECT_FALSE(Deterministic());
  AllowTf32(false);
  SetDeterministic(true);
  EXPECT_TRUE(Deterministic());
  SetDeterministic(false);
  EXPECT_FALSE(Tf32Allowed());
}

}  // namespace
}  // namespace baton
