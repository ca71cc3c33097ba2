// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker that keeps shards until it is killed, or its input ends:
// shard_server NAME RENDEZVOUS WORKERS (or rpc::kOneMore). Where names of
// servers follow, it makes parameter servers at these and gives their directory
// to worker "trainer".

#include "tests/models/distributed/server/programs/shard_server.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/distributed/context.h"
#include "core/status.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/cluster.h"

namespace baton::dist {
namespace {

absl::StatusOr<std::unique_ptr<ParameterServers>> MakeServers(
    rpc::Agent& agent, const std::vector<std::string>& names) {
  ServerOptions options;
  options.mode = Consistency::kAsynchronous;
  options.rule = ops::SgdRule{.lr = 1};
  options.backups = true;
  options.part_bytes = 1 << 14;
  ASSIGN_OR_RETURN(
      auto servers,
      ParameterServers::Make(agent, names, options,
                             {{"x", Tensor::Zeros({testing::kElements})}}));
  RETURN_IF_ERROR(
      agent.Async<&testing::TakeDirectory>("trainer", servers->directory())
          .Await());
  return servers;
}

absl::Status Serve(const std::vector<std::string>& args) {
  rpc::Registry registry;
  Register(registry);
  RegisterParameterServers(registry);
  registry.AddFunction<&testing::TakeDirectory>();
  rpc::ClusterOptions options;
  options.name = args[0];
  options.rendezvous = args[1];
  options.world_size = std::atoi(args[2].c_str());
  options.agent.on_start = Attach;
  ASSIGN_OR_RETURN(const auto agent,
                   rpc::JoinCluster(std::move(options), std::move(registry)));
  std::unique_ptr<ParameterServers> made;
  if (args.size() > 3) {
    ASSIGN_OR_RETURN(made, MakeServers(*agent, {args.begin() + 3, args.end()}));
  }
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton::dist

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const absl::Status status = baton::dist::Serve({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
