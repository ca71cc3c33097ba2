// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/shown_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "rpc/rref.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using ::testing::StartsWith;

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
  EXPECT_EQ(ShownName("RuleOptimizer<baton::optim::AdamWOptions>"), "AdamW");
  EXPECT_EQ(ShownName("RuleOptimizer<X>"), "RuleOptimizer<X>");
}

TEST(ShownName, CallsStringsAsTheirUserDoes) {
  EXPECT_EQ(ShownName("basic_string<char>"), "string");
  EXPECT_EQ(ShownName("map<std::__cxx11::basic_string<char>, int>"),
            "map<string, int>");
}

TEST(ShownName, LeavesTextAroundNames) {
  EXPECT_EQ(ShownName("call dist::RegisterOptimizer<RuleOptimizer<baton::ops::"
                      "AdamRule> >(registry)"),
            "call dist::RegisterOptimizer<Adam>(registry)");
}

struct Thing {};
template <typename T>
class Box {
 public:
  absl::Status Open() { return absl::NotFoundError("it is empty"); }
  using Exports = Methods<rpc::kConstructor<>, &Box::Open>;
};

TEST(ShownName, IsInErrorsOfCallsAndInRRefs) {
  testing::ClusterOptions options;
  options.fill = [](Registry& registry) { registry.Add<Box<Thing>>(); };
  testing::LocalCluster cluster(options);
  const auto box = Create<Box<Thing>>(cluster["alice"], "bob").Await();
  ASSERT_THAT(box, testing::IsOk());
  EXPECT_THAT(box->Async<&Box<Thing>::Open>().Await(),
              testing::Fails(absl::StatusCode::kNotFound,
                             "bob, Box<Thing>::Open: it is empty"));
  EXPECT_THAT(box->ToString(), StartsWith("RRef<Box<Thing>>("));
}

TEST(ShownName, SurvivesWhatIsNoName) {
  EXPECT_EQ(ShownName(""), "");
  EXPECT_EQ(ShownName("a > b::c < "), "a> b::c < ");
  EXPECT_EQ(ShownName("<::"), "<");
}

}  // namespace
}  // namespace baton::rpc
