// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cluster_main.h"

#include "core/status.h"
#include "tools/cluster_flags.h"
#include "tools/command_line.h"
#include "tools/daemon.h"
#include "tools/serve.h"

namespace baton::tools::internal {
namespace {

absl::Status RunProcess(const ClusterProgram& program,
                        const JoinFunction& join) {
  ASSIGN_OR_RETURN(rpc::ClusterOptions options,
                   ClusterOptionsFromFlags("trainer"));
  const bool trains = options.name == "trainer";
  if (trains && program.check) RETURN_IF_ERROR(CatchErrors(program.check));
  rpc::Registry registry;
  if (program.add) program.add(registry);
  StopSignal stop;
  const std::string host = options.rendezvous_host;
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   join(std::move(options), std::move(registry)));
  absl::Status result;
  if (trains) {
    result = CatchErrors([&] { return program.train(*agent); });
  } else {
    Serve(*agent, stop, host);
  }
  const absl::Status left = agent->Shutdown();
  if (!left.ok()) EndWithRunningHandlers(ExitCode(result.ok() ? left : result));
  return result;
}

}  // namespace

int ClusterMain(int argc, char** argv, const ClusterProgram& program,
                const JoinFunction& join) {
  ParseFlagsAloneOrExit(argc, argv, program.usage);
  return ExitCode(RunProcess(program, join));
}

}  // namespace baton::tools::internal
