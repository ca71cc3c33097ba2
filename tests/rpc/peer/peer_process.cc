// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/peer/peer_process.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc/cluster.h"
#include "tests/rpc/peer/keeper.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {

std::unique_ptr<ChildProcess> StartPeer(const std::string& name,
                                        const Meeting& meeting) {
  return std::make_unique<ChildProcess>(std::vector<std::string>{
      ProgramPath("worker_peer"), name, meeting.rendezvous,
      absl::StrCat(meeting.world_size), absl::StrCat(meeting.lease.count())});
}

std::unique_ptr<rpc::Agent> JoinAsAlice(const Meeting& meeting) {
  rpc::ClusterOptions options;
  options.name = "alice";
  options.rendezvous = meeting.rendezvous;
  options.world_size = meeting.world_size;
  options.agent.lease = meeting.lease;
  rpc::Registry registry;
  FillKeeper(registry);
  auto alice = JoinCluster(std::move(options), std::move(registry));
  EXPECT_THAT(alice, IsOk());
  return *std::move(alice);
}

}  // namespace baton::testing
