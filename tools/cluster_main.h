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

// A program that is all processes of its cluster: baton-run starts it as the
// trainer and, by --worker_program, as the workers.
struct ClusterProgram {
  std::string usage = {};  // what --help begins with
  // What the process named "trainer" does; the others serve it until a signal
  // ends them. What it throws becomes a status.
  std::function<absl::Status(rpc::Agent&)> train = {};
  // Whether the trainer's flags are right, before anybody hears of it. The
  // workers were given none.
  std::function<absl::Status()> check = {};
  // Registers what is no class, or is no part of other programs.
  std::function<void(rpc::Registry&)> add = {};
};

namespace internal {

using JoinFunction = std::function<absl::StatusOr<std::unique_ptr<rpc::Agent>>(
    rpc::ClusterOptions, rpc::Registry)>;
int ClusterMain(int argc, char** argv, const ClusterProgram& program,
                const JoinFunction& join);

}  // namespace internal

// The main of such a program: reads the flags (tools/cluster_flags.h), joins by
// dist::Join<Parts...>, trains or serves, leaves. Gives the exit code.
//
//   int main(int argc, char** argv) {
//     return baton::tools::ClusterMain<Layer>(
//         argc, argv, {.usage = "usage: ...", .train = Train});
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
