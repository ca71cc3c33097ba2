// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/shown_name.h"

#include <gtest/gtest.h>

namespace baton::tools {
namespace {

TEST(ShownName, LeavesOutNamespacesOfTemplateArguments) {
  EXPECT_EQ(ShownName("Layer::Forward"), "Layer::Forward");
  EXPECT_EQ(ShownName("ForwardOf<baton::{anonymous}::Layer>"),
            "ForwardOf<Layer>");
  EXPECT_EQ(ShownName("ForwardOf<baton::(anonymous namespace)::Layer>"),
            "ForwardOf<Layer>");
  EXPECT_EQ(ShownName("Make<std::pair<a::X, const b::Y> >::At"),
            "Make<pair<X, const Y>>::At");
}

TEST(ShownName, CallsOptimizersAsTheirUserDoes) {
  EXPECT_EQ(ShownName("LocalOptimizer<baton::optim::RuleOptimizer<baton::ops::"
                      "SgdRule> >::Step"),
            "LocalOptimizer<Sgd>::Step");
  EXPECT_EQ(ShownName("RuleOptimizer<X>"), "RuleOptimizer<X>");
}

TEST(ShownName, SurvivesWhatIsNoName) {
  EXPECT_EQ(ShownName(""), "");
  EXPECT_EQ(ShownName("a > b::c < "), "a> b::c < ");
  EXPECT_EQ(ShownName("<::"), "<");
}

}  // namespace
}  // namespace baton::tools
