// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cluster_main.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "tools/cluster_flags.h"
#include "tools/command_line.h"
#include "tools/daemon.h"
#include "tools/serve.h"

namespace baton::tools::internal {
namespace {

// "usage: baton-run --workers=2 --worker_program=rl -- rl", on two lines if
// that is longer than one.
std::string UsageOf(const ClusterProgram& program, const std::string& name) {
  const std::string launch =
      absl::StrCat("usage: baton-run --workers=", program.workers,
                   " --worker_program=", name, " --");
  const std::string own = absl::StrCat(
      name, program.arguments.empty() ? "" : " ", program.arguments);
  constexpr size_t kWidth = 80;
  const bool fits = launch.size() + 1 + own.size() <= kWidth;
  return absl::StrCat(launch, fits ? " " : "\n           ", own, "\n",
                      program.about);
}

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
  ParseFlagsAloneOrExit(
      argc, argv,
      UsageOf(program, std::filesystem::path(argv[0]).filename().string()));
  return ExitCode(RunProcess(program, join));
}

}  // namespace baton::tools::internal
