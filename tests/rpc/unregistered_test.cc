// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/unregistered.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "rpc/agent.h"
#include "rpc/call_options.h"
#include "rpc/rref.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using absl::StatusCode;
using testing::Fails;

constexpr char kLine[] = "join by dist::Join<baton::Layer>(options)";

struct Unlisted {
  using Exports = Methods<rpc::kConstructor<>>;
};
int64_t Unknown() { return 0; }
absl::StatusOr<int64_t> AskCarol(CallContext& call) {
  return call.agent().Async<&Unknown>("carol").Await();
}

class UnregisteredTest : public ::testing::Test {
 protected:
  static testing::ClusterOptions Options() {
    testing::ClusterOptions options;
    options.names = {"alice", "bob", "carol"};
    options.fill = [](Registry& registry) {
      registry.AddFunction<&AskCarol>();
    };
    return options;
  }
  static std::string TextOf(const absl::Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    return std::string(status.message());
  }
  testing::LocalCluster cluster_{Options()};
  Agent& alice_ = cluster_["alice"];
};

TEST_F(UnregisteredTest, AFunctionOrAClassHasTheLineToAdd) {
  EXPECT_EQ(
      TextOf(alice_.Async<&Unknown>("bob").Await().status()),
      "bob, Unknown: not registered on this worker: call "
      "registry.AddFunction<&Unknown>() before joining, in every process");
  EXPECT_EQ(TextOf(Create<Unlisted>(alice_, "bob").Await().status()),
            "bob, Unlisted::Make: not registered on this worker: call "
            "registry.Add<Unlisted>() before joining, in every process");
}

TEST_F(UnregisteredTest, AnInternalFunctionIsNamedAsTheProgramCallsIt) {
  EXPECT_EQ(
      TextOf(OrNameMissing(alice_.Async<&Unknown>("bob"), "baton::Layer", kLine)
                 .Await()
                 .status()),
      "bob, baton::Layer: not registered on this worker: join by "
      "dist::Join<Layer>(options), in every process");
}

TEST_F(UnregisteredTest, WhatACalledMethodLacksIsNotMistakenForIt) {
  const auto asked =
      OrNameMissing(alice_.Async<&AskCarol>("bob"), "Layer", kLine).Await();
  EXPECT_EQ(
      TextOf(asked.status()),
      "bob, AskCarol: carol, Unknown: not registered on this worker: call "
      "registry.AddFunction<&Unknown>() before joining, in every process");
}

TEST_F(UnregisteredTest, OtherErrorsAndResultsStayAsTheyAre) {
  const absl::Status other =
      CallFailed(absl::UnimplementedError("not written yet"), {"bob", "Step"});
  EXPECT_EQ(NameMissing(other, "Layer", kLine), other);
  EXPECT_EQ(OrNameMissing(ReadyFuture<int>(3), "Layer", kLine).Await().value(),
            3);
}

}  // namespace
}  // namespace baton::rpc
