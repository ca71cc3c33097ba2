// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/distributed/join.h"
#include "rpc/agent.h"
#include "rpc/cluster.h"
#include "rpc/registry.h"

namespace baton::tools {

// A program of which all processes of a cluster run: baton-run starts it as the
// trainer and, by --worker_program, as the workers.
struct ClusterProgram {
  // The first line of --help is how baton-run starts the program with this many
  // workers and these arguments; what it does follows.
  int workers = 1;
  std::string arguments = {};
  std::string about = {};
  // Runs in the process named "trainer"; the others serve until a signal ends
  // them. Exceptions become a status.
  std::function<absl::Status(rpc::Agent&)> train = {};
  // Checks the trainer's flags before it joins the cluster. The workers are
  // given none of them.
  std::function<absl::Status()> check = {};
  // Registers functions and other things that are not among Parts.
  std::function<void(rpc::Registry&)> add = {};
};

namespace internal {

using JoinFunction = std::function<absl::StatusOr<std::unique_ptr<rpc::Agent>>(
    rpc::ClusterOptions, rpc::Registry)>;
int ClusterMain(int argc, char** argv, const ClusterProgram& program,
                const JoinFunction& join);

}  // namespace internal

// The main of such a program: reads the flags (tools/cluster_flags.h), joins
// the cluster by dist::Join<Parts...>, trains or serves, and leaves. Returns
// the exit code.
//
//   int main(int argc, char** argv) {
//     return baton::tools::ClusterMain<Layer>(
//         argc, argv, {.workers = 2, .about = "Trains ...", .train = Train});
//   }
template <typename... Parts>
int ClusterMain(int argc, char** argv, const ClusterProgram& program) {
  return internal::ClusterMain(
      argc, argv, program,
      [](rpc::ClusterOptions options, rpc::Registry registry) {
        return dist::Join<Parts...>(std::move(options), std::move(registry));
      });
}

}  // namespace baton::tools
