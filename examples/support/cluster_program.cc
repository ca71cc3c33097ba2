// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/cluster_program.h"

#include <memory>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "core/status.h"
#include "examples/support/charts.h"
#include "rpc/cluster.h"
#include "rpc/collectives/collectives.h"
#include "tools/cluster_flags.h"
#include "tools/command_line.h"
#include "tools/daemon.h"

ABSL_FLAG(std::string, json, "",
          "write a JSON line for each row of the table to this file; - is "
          "stdout");
ABSL_FLAG(std::string, plot, "", "draw charts into this folder");

namespace baton::examples {

absl::Status RunInCluster(
    rpc::Registry registry, const std::function<absl::Status()>& check,
    const std::function<absl::Status(rpc::Agent&)>& lead) {
  ASSIGN_OR_RETURN(rpc::ClusterOptions options,
                   tools::ClusterOptionsFromFlags("trainer"));
  dist::Register(registry);
  options.agent.on_start = [](rpc::Agent& agent) {
    dist::Attach(agent);
    rpc::AttachCollectives(agent);
  };
  const bool leads = options.name == "trainer";
  if (leads) RETURN_IF_ERROR(CatchErrors(check));  // the others were given none
  tools::StopSignal stop;
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   rpc::JoinCluster(std::move(options), std::move(registry)));
  absl::Status result;
  if (leads) {
    result = CatchErrors([&] { return lead(*agent); });
  } else {
    stop.Wait();
  }
  const absl::Status shutdown = agent->Shutdown();
  return result.ok() ? shutdown : result;
}

absl::Status Tell(const Findings& findings) {
  RETURN_IF_ERROR(tools::Print(
      absl::StrCat(FormatTable(findings.measurements), findings.further)));
  if (const std::string json = absl::GetFlag(FLAGS_json); !json.empty())
    RETURN_IF_ERROR(WriteJsonLines(json, findings.measurements));
  const std::string folder = absl::GetFlag(FLAGS_plot);
  if (folder.empty() || findings.charts.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string drawn,
                   TellDrawn(DrawCharts(folder, findings.charts)));
  return tools::Print(drawn);
}

}  // namespace baton::examples
