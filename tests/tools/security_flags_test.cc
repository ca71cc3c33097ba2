// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/security_flags.h"

#include <gtest/gtest.h>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"

ABSL_DECLARE_FLAG(bool, trusted_fabric);

namespace baton::tools {
namespace {

TEST(SecurityFlags, ATrustedFabricIsHandedOn) {
  const absl::FlagSaver saver;
  for (const bool trusted : {false, true}) {
    absl::SetFlag(&FLAGS_trusted_fabric, trusted);
    const auto security = SecurityFromFlags("worker1");
    ASSERT_TRUE(security.ok()) << security.status();
    EXPECT_EQ(security->trusted_fabric, trusted);
    EXPECT_FALSE(security->insecure) << "that is another matter";
    const auto environment = SecurityEnvironment();
    const auto found = environment.find("BATON_TRUSTED_FABRIC");
    ASSERT_EQ(found != environment.end(), trusted);
    EXPECT_EQ(trusted ? found->second : "on", "on");
  }
}

}  // namespace
}  // namespace baton::tools
