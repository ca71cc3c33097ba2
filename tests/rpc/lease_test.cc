// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/grpc.h"
#include "rpc/transports/in_process.h"
#include "rpc/worker.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using std::chrono::milliseconds;

constexpr milliseconds kWrong[] = {-1ms, 1ms, rpc::kLeastLease - 1ms,
                                   rpc::kMostLease + 1ms, milliseconds::max()};

TEST(ALease, IsRefusedWithWhatIsPossible) {
  EXPECT_THAT(rpc::CheckLease(rpc::kLeastLease), IsOk());
  EXPECT_THAT(rpc::CheckLease(rpc::kMostLease), IsOk());
  EXPECT_THAT(rpc::CheckLease(99ms),
              Fails(StatusCode::kInvalidArgument, "at least 100 ms"));
  EXPECT_THAT(rpc::CheckLease(milliseconds::max()),
              Fails(StatusCode::kInvalidArgument, "at most 24 hours"));
}

TEST(ALease, OfATransportMayBeNoneButNotWrong) {
  for (const milliseconds lease : {0ms, rpc::kLeastLease, rpc::kMostLease})
    EXPECT_THAT(rpc::MakeGrpcTransport({.lease = lease}), IsOk());
  for (const milliseconds lease : kWrong) {
    EXPECT_THAT(rpc::MakeGrpcTransport({.lease = lease}),
                Fails(StatusCode::kInvalidArgument, "lease"));
  }
}

TEST(ALease, OfAnAgentMayNotBeWrong) {
  for (const milliseconds lease : kWrong) {
    rpc::InProcessNetwork network;
    EXPECT_THAT(rpc::Agent::Start(
                    {.self = {"alice", rpc::Rank{0}, 1, ""}, .lease = lease},
                    {}, network.NewTransport()),
                Fails(StatusCode::kInvalidArgument, "lease"));
  }
}

// At once: nobody listens there.
TEST(ALease, ThatIsWrongEndsJoiningAtOnce) {
  for (const milliseconds lease : kWrong) {
    rpc::ClusterOptions options;
    options.name = "alice";
    options.rendezvous = "127.0.0.1:1";
    options.world_size = 2;
    options.agent.lease = lease;
    EXPECT_THAT(rpc::JoinCluster(options, {}),
                Fails(StatusCode::kInvalidArgument, "--lease"));
  }
}

TEST(ALease, ThatIsWrongIsRefusedByARendezvous) {
  const auto server = rpc::RendezvousServer::Make("127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(
      rpc::Join((*server)->address(), {.self = {"alice", {}, 1, "127.0.0.1:1"},
                                       .world_size = 1,
                                       .timeout = 5s,
                                       .lease = 1ms}),
      Fails(StatusCode::kInvalidArgument, "at least 100 ms"));
}

}  // namespace
}  // namespace baton::testing
