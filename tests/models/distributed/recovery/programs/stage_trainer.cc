// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A trainer of stages at workers "one", "two" and "three", which notes what it
// does in a journal: stage_trainer NAME RENDEZVOUS WORLD_SIZE JOURNAL STEPS.
// With WORLD_SIZE 0 it is one more. Prints "after N" once it begins after step
// N, "N LOSS" after each step, and in the end "over" or an error.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/precision.h"
#include "core/status.h"
#include "tests/models/distributed/process_stages.h"
#include "tests/models/distributed/recovery/recovered_stages.h"

namespace baton::dist {
namespace {

absl::Status Train(rpc::Agent& agent, const std::string& journal, int steps) {
  RecoveredStages stages(agent, {"one", "two", "three"});
  const auto pipeline = stages.Pipeline(
      {.journal = journal, .most_redone = RecoveredStages::kMostRedone});
  if (pipeline == nullptr) return absl::UnavailableError("no pipeline");
  std::printf("after %" PRId64 "\n", pipeline->steps());
  // The journal has what was noted of that time.
  const auto& resumed = pipeline->resumed();
  if (resumed.has_value() && resumed->trainer.at("step").Item() !=
                                 static_cast<double>(pipeline->steps()))
    return absl::DataLossError("the journal has noted another step");
  while (pipeline->steps() < steps) {
    const auto step = static_cast<int>(pipeline->steps());
    pipeline->Note({{"step", Tensor::From<int64_t>({step})}});
    ASSIGN_OR_RETURN(const auto result, RecoveredStages::Step(*pipeline, step));
    std::printf("%d %a\n", step, result.loss);
  }
  return pipeline->Finish();
}

absl::Status Main(char** argv) {
  ASSIGN_OR_RETURN(const auto agent,
                   JoinProcesses(argv[1], argv[2], std::atoi(argv[3])));
  absl::Status trained = Train(*agent, argv[4], std::atoi(argv[5]));
  agent->Shutdown({.mode = rpc::ShutdownOptions::Mode::kNow}).IgnoreError();
  return trained;
}

}  // namespace
}  // namespace baton::dist

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  baton::SetDeterministic(true);
  const absl::Status status =
      baton::CatchErrors([&] { return baton::dist::Main(argv); });
  std::printf("%s\n", status.ok() ? "over" : status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
